package compare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Each case is an object in Git and live, with who owns what; want is what is sent.
func TestRespect(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, annotations: {mark: git}}\n"
	replicas := rule{JSONPointers: []string{"/spec/replicas"}}
	for name, c := range map[string]struct {
		rule                  rule
		git, live, own, other string
		want                  string
		same                  bool
	}{
		"nothing ignored": {
			rule: rule{JSONPointers: []string{"/spec/nope"}}, git: "spec: {replicas: 2}", live: "spec: {replicas: 5}",
			own: `{"f:spec":{"f:replicas":{}}}`, want: "spec: {replicas: 2}", same: true,
		},
		"another manager owns it": {
			rule: replicas, git: "spec: {replicas: 2, x: 1}", live: "spec: {replicas: 5, x: 0}",
			own: `{"f:spec":{"f:x":{}}}`, other: `{"f:spec":{"f:replicas":{}}}`, want: "spec: {x: 1}",
		},
		"shared with another manager": {
			rule: replicas, git: "spec: {replicas: 2, x: 1}", live: "spec: {replicas: 5}",
			own: `{"f:spec":{"f:replicas":{}}}`, other: `{"f:spec":{"f:replicas":{}}}`, want: "spec: {x: 1}",
		},
		"ours": {
			rule: replicas, git: "spec: {replicas: 2}", live: "spec: {replicas: 5}",
			own: `{"f:spec":{"f:replicas":{}}}`, want: "spec: {replicas: 5}",
		},
		"nobody's": {
			rule: replicas, git: "spec: {replicas: 2}", live: "spec: {replicas: 1}", own: `{"f:spec":{"f:x":{}}}`, want: "spec: {replicas: 1}",
		},
		"not there yet": {
			rule: replicas, git: "spec: {replicas: 2}", live: "spec: {x: 1}", own: `{"f:spec":{"f:x":{}}}`, want: "spec: {replicas: 2}", same: false,
		},
		"ours and declared no longer": {
			rule: replicas, git: "spec: {x: 1}", live: "spec: {replicas: 5, x: 1}",
			own: `{"f:spec":{"f:replicas":{},"f:x":{}}}`, want: "spec: {replicas: 5, x: 1}",
		},
		"another's and declared no longer": {
			rule: replicas, git: "spec: {x: 1}", live: "spec: {replicas: 5, x: 1}",
			own: `{"f:spec":{"f:x":{}}}`, other: `{"f:spec":{"f:replicas":{}}}`, want: "spec: {x: 1}",
		},
		"ours alone, with its parent gone": {
			rule: rule{JSONPointers: []string{"/spec/a/b"}}, git: "spec: {x: 1}", live: "spec: {x: 1, a: {b: 7, c: 8}}",
			own: `{"f:spec":{"f:x":{},"f:a":{"f:b":{},"f:c":{}}}}`, want: "spec: {x: 1, a: {b: 7}}",
		},
		"items by their keys, in another order": {
			rule: rule{JQPathExpressions: []string{`.spec.c[] | select(.name == "b") | .image`}},
			git:  "spec: {c: [{name: b, image: git}, {name: a, image: git}]}",
			live: "spec: {c: [{name: x, image: live}, {name: a, image: live}, {name: b, image: live}]}",
			own:  `{"f:spec":{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			want: "spec: {c: [{name: b, image: live}, {name: a, image: git}]}",
		},
		"an item that others own in part": {
			rule:  rule{JQPathExpressions: []string{`.spec.c[] | select(.name == "b")`}},
			git:   "spec: {c: [{name: b, image: git, cpu: 1}]}",
			live:  "spec: {c: [{name: b, image: live, cpu: 2}]}",
			own:   `{"f:spec":{"f:c":{"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:cpu":{}}}}}`,
			other: `{"f:spec":{"f:c":{"k:{\"name\":\"b\"}":{"f:image":{}}}}}`,
			want:  "spec: {c: [{name: b, cpu: 2}]}",
		},
		"an ignored item that left Git": {
			rule: rule{JQPathExpressions: []string{`.spec.c[] | select(.name == "b")`}},
			git:  "spec: {c: [{name: a}]}",
			live: "spec: {c: [{name: a}, {name: b, image: live}]}",
			own:  `{"f:spec":{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			want: "spec: {c: [{name: a}, {name: b, image: live}]}",
		},
		"a field of an item that left Git": {
			rule: rule{JQPathExpressions: []string{`.spec.c[].image`}},
			git:  "spec: {c: [{name: a}]}",
			live: "spec: {c: [{name: a}, {name: b, image: live}]}",
			own:  `{"f:spec":{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			want: "spec: {c: [{name: a}]}",
		},
		"a list that is one value": {
			rule: rule{JSONPointers: []string{"/spec/l/0/ca"}},
			git:  "spec: {l: [{ca: git, x: git}]}", live: "spec: {l: [{ca: live, x: live}]}",
			own: `{"f:spec":{"f:x":{}}}`, other: `{"f:spec":{"f:l":{}}}`, want: "spec: {l: [{ca: live, x: git}]}",
		},
		"a set of values": {
			rule: rule{JSONPointers: []string{"/spec/s/0"}}, git: "spec: {s: [a, b]}", live: "spec: {s: [z, b]}",
			own: `{"f:spec":{"f:s":{"v:\"b\"":{}}}}`, other: `{"f:spec":{"f:s":{"v:\"z\"":{}}}}`, want: "spec: {s: [a, b]}",
		},
		"a whole map": {
			rule: rule{JSONPointers: []string{"/spec"}}, git: "spec: {a: git, b: git}", live: "spec: {a: live, b: live, c: live}",
			own: `{"f:spec":{"f:a":{}}}`, other: `{"f:spec":{"f:b":{}}}`, want: "spec: {a: live}",
		},
		"trusted manager": {
			rule: rule{ManagedFieldsManagers: []string{"other"}}, git: "spec: {replicas: 2, x: 1}", live: "spec: {replicas: 5, x: 0}",
			own: `{"f:spec":{"f:x":{}}}`, other: `{"f:spec":{"f:replicas":{}}}`, want: "spec: {x: 1}",
		},
	} {
		c.rule.Group, c.rule.Kind = "apps", "Deployment"
		live := object(t, head+c.live, ours(c.own))
		if c.other != "" {
			live.SetManagedFields(append(live.GetManagedFields(), entry("other", "Update", "", c.other)))
		}
		git := object(t, head+c.git)
		before := git.DeepCopy()
		got, changed, err := rules(t, c.rule).For(web("web")).Respect(t.Context(), git.Object, live, "mark")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(object(t, head+c.want).Object, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if changed == c.same {
			t.Errorf("%s: changed %v", name, changed)
		}
		if d := cmp.Diff(before.Object, git.Object); d != "" {
			t.Errorf("%s: the declared object was changed: %s", name, d)
		}
	}
}

// Rules can't take an object's identity or the mark of who it belongs to.
func TestRespectKeepsTheIdentity(t *testing.T) {
	git := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: n, annotations: {mark: git, x: git}}\n")
	live := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: n, uid: u, annotations: {x: live}}\n",
		entry("other", "Update", "", `{"f:metadata":{"f:annotations":{".":{},"f:x":{}}}}`))
	r := rules(t, rule{Kind: "ConfigMap", JSONPointers: []string{"/metadata", "/kind"}, JQPathExpressions: []string{".", ".metadata.annotations", ".apiVersion"}})
	got, _, err := r.For(manifest.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}).Respect(t.Context(), git.Object, live, "mark")
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: n, annotations: {mark: git}}\n").Object
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAuthor(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, l: w}\n"
	for name, c := range map[string]struct {
		own, other, manager, subresource string
		paths                            []string
		want                             string
	}{
		"edit":                {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "kubectl-edit", "", []string{".data.k"}, "kubectl edit at 2026-05-04 12:03 UTC"},
		"autoscaler":          {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "kube-controller-manager", "scale", []string{".data.k"}, "a HorizontalPodAutoscaler at 2026-05-04 12:03 UTC"},
		"scaled by hand":      {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "kubectl", "scale", []string{".data.k"}, "kubectl scale at 2026-05-04 12:03 UTC"},
		"Argo CD":             {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "argocd-controller", "", []string{".data.k"}, "Argo CD at 2026-05-04 12:03 UTC"},
		"one of several":      {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "some-operator", "", []string{".data.k", ".data.gone"}, "some-operator at 2026-05-04 12:03 UTC"},
		"removed":             {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "kubectl-edit", "", []string{".data.gone"}, compare.UnknownAuthor},
		"the source changed":  {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "kubectl-edit", "", []string{".data.l"}, ""},
		"nothing differs":     {`{"f:data":{"f:l":{}}}`, `{"f:data":{"f:k":{}}}`, "kubectl-edit", "", nil, ""},
		"an entry of garbage": {`{"f:data":{"f:l":{}}}`, `{"f:data":7}`, "kubectl-edit", "", []string{".data.k"}, compare.UnknownAuthor},
	} {
		live := object(t, text, ours(c.own), entry(c.manager, "Update", c.subresource, c.other))
		if got := compare.Author(live, c.paths); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	if got := compare.Author(object(t, text), []string{".data.k"}); got != "" {
		t.Errorf("never applied by us: %q", got)
	}
	live := object(t, text, ours(`{"f:data":{"f:l":{}}}`), entry("kubectl-patch", "Update", "", `{"f:data":{"f:k":{}}}`))
	if got, want := compare.Drift(live, []string{".data.k"}), ".data.k differs; last written by kubectl patch at 2026-05-04 12:03 UTC"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestIgnoresExtraneous(t *testing.T) {
	for value, want := range map[string]bool{
		"IgnoreExtraneous": true, "ServerSideDiff=true, IgnoreExtraneous": true, "": false, "ServerSideDiff=true": false,
		"IncludeMutationWebhook=true": false, "NotIgnoreExtraneous": false,
	} {
		if got := compare.IgnoresExtraneous(map[string]string{compare.OptionsAnnotation: value}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
