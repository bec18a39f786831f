package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
)

// served are kinds as discovery tells them.
type served map[string]cluster.Resource

func (s served) Kind(gvk schema.GroupVersionKind) (cluster.Resource, error) {
	if gvk.Group == "broken.example.com" {
		return cluster.Resource{}, errors.New("discovery does not answer")
	}
	r, ok := s[gvk.Kind]
	if !ok {
		return r, fmt.Errorf("kind %s: %w", gvk.Kind, cluster.ErrNoKind)
	}
	return r, nil
}

func kindsForTest() served {
	r := func(group, resource, kind string, namespaced bool) cluster.Resource {
		return cluster.Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Kind: kind, Namespaced: namespaced,
			Patchable: true, Watchable: true,
		}
	}
	return served{
		"ConfigMap": r("", "configmaps", "ConfigMap", true), "Secret": r("", "secrets", "Secret", true), "Namespace": r("", "namespaces", "Namespace", false),
		"Job": r("batch", "jobs", "Job", true), "CustomResourceDefinition": r("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", false),
	}
}

func applicationForTest() *v1alpha1.Application {
	a := &v1alpha1.Application{}
	a.Name, a.Namespace = "shop", "lockstep"
	a.Spec.Destination = v1alpha1.ApplicationDestination{Server: InClusterServer, Namespace: "web"}
	return a
}

func manifests(t *testing.T, texts ...string) *rendering {
	t.Helper()
	r := &rendering{digest: "digest"}
	for i, text := range texts {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		r.objects = append(r.objects, manifest.Object{Unstructured: u, Origin: manifest.Origin{File: fmt.Sprintf("file%d.yaml", i), Line: 1}})
	}
	return r
}

func preparationForTest(rules project.Rules) preparation {
	return preparation{
		app: applicationForTest(), rules: rules, kinds: kindsForTest(), key: []byte("key"),
		seal:    func(b []byte) []byte { return []byte(fmt.Sprintf("sealed %d bytes", len(b))) },
		cluster: project.Cluster{Server: InClusterServer, Name: InClusterName},
	}
}

func prepared(t *testing.T, rules project.Rules, texts ...string) *desiredSet {
	t.Helper()
	set, err := preparationForTest(rules).prepare(manifests(t, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const cm = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}`

func TestPrepare(t *testing.T) {
	set := prepared(t, project.Anything(),
		cm,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: other}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: team, namespace: ignored}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: h, annotations: {argocd.argoproj.io/hook: PreSync}}}`)
	want := map[manifest.Key]string{
		{Kind: "ConfigMap", Namespace: "web", Name: "a"}:   "shop:/ConfigMap:web/a",
		{Kind: "ConfigMap", Namespace: "other", Name: "b"}: "shop:/ConfigMap:other/b",
		{Kind: "Namespace", Name: "team"}:                  "shop:/Namespace:web/team",
	}
	if len(set.objects) != len(want) || len(set.byKey) != len(want) {
		t.Fatalf("%d objects, %d keys", len(set.objects), len(set.byKey))
	}
	for key, id := range want {
		at, ok := set.byKey[key]
		if !ok {
			t.Errorf("%s is missing", key)
			continue
		}
		d := set.objects[at]
		var sent map[string]any
		if err := json.Unmarshal(d.body, &sent); err != nil {
			t.Fatal(err)
		}
		meta, _ := sent["metadata"].(map[string]any)
		ns, _ := meta["namespace"].(string)
		annotations, _ := meta["annotations"].(map[string]any)
		if d.problem != nil || ns != key.Namespace || annotations[TrackingAnnotation] != id {
			t.Errorf("%s: problem %v, metadata %v", key, d.problem, meta)
		}
		if owner := ownerOf(id, key); owner != "shop" {
			t.Errorf("%s: the mark names %q", key, owner)
		}
	}
	if len(set.hooks) != 1 || set.hooks[0].key.Name != "h" {
		t.Errorf("hooks %v", set.hooks)
	}
	if d := cmp.Diff([]schema.GroupKind{{Group: "batch", Kind: "Job"}, {Kind: "ConfigMap"}, {Kind: "Namespace"}}, set.kinds); d != "" {
		t.Errorf("kinds (-want +got)\n%s", d)
	}
}

func TestHashFollowsTheBody(t *testing.T) {
	hash := func(p preparation, text string) string {
		set, err := p.prepare(manifests(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return set.objects[0].hash
	}
	p := preparationForTest(project.Anything())
	base := hash(p, cm)
	if hash(p, `{kind: ConfigMap, data: {k: v}, metadata: {creationTimestamp: null, name: a, namespace: web}, status: {x: 1}, apiVersion: v1}`) != base {
		t.Error("the order of fields, and what Git can't decide, change the hash")
	}
	if hash(p, strings.Replace(cm, "k: v", "k: w", 1)) == base {
		t.Error("another value has the same hash")
	}
	other := p
	other.key = []byte("another key")
	if hash(other, cm) == base {
		t.Error("the hash does not depend on the key: values could be guessed")
	}
}

func TestSecretsAreSealed(t *testing.T) {
	set := prepared(t, project.Anything(), `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {pw: CANARY}}`)
	d := set.objects[0]
	if !d.sealed || !strings.HasPrefix(string(d.body), "sealed ") {
		t.Errorf("body %s", d.body)
	}
	for _, field := range []string{"data", "stringData"} {
		if _, there := d.Object.Unstructured.Object[field]; there {
			t.Errorf("the object kept holds %s", field)
		}
	}
	if prepared(t, project.Anything(), cm).objects[0].sealed {
		t.Error("a ConfigMap is sealed")
	}
}

func TestC060PrepareNamesTheFieldOnly(t *testing.T) {
	_, err := preparationForTest(project.Anything()).prepare(manifests(t, `{apiVersion: v1, kind: Secret, metadata: {name: bad}, stringData: {pw: CANARY, num: 4711}}`))
	if err == nil || !strings.Contains(err.Error(), "file0.yaml") || !strings.Contains(err.Error(), "stringData.num") ||
		strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), "4711") {
		t.Errorf("got %v", err)
	}
}

func TestDeclaredTwice(t *testing.T) {
	set := prepared(t, project.Anything(), cm, strings.Replace(cm, "k: v", "k: last", 1))
	if len(set.objects) != 1 || !strings.Contains(string(set.objects[0].body), "last") {
		t.Fatalf("%d objects, %s", len(set.objects), set.objects[0].body)
	}
	if len(set.warnings) != 1 || set.warnings[0].Type != v1alpha1.ConditionRepeatedResourceWarning {
		t.Fatalf("warnings %v", set.warnings)
	}
	for _, part := range []string{"ConfigMap/web/a", "file0.yaml", "file1.yaml"} {
		if !strings.Contains(set.warnings[0].Message, part) {
			t.Errorf("%q does not name %s", set.warnings[0].Message, part)
		}
	}
}

func TestProblems(t *testing.T) {
	narrow := project.Of(&v1alpha1.AppProject{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: v1alpha1.AppProjectSpec{
		Destinations:               []v1alpha1.ApplicationDestination{{Server: "*", Namespace: "web"}},
		NamespaceResourceBlacklist: []metav1.GroupKind{{Group: "batch", Kind: "Job"}},
	}})
	cases := []struct {
		name  string
		rules project.Rules
		text  string
		want  string
	}{
		{"fine", narrow, cm, ""},
		{"another namespace", narrow, strings.Replace(cm, "name: a", "name: a, namespace: kube-system", 1), `namespace "kube-system"`},
		{"a forbidden kind", narrow, `{apiVersion: batch/v1, kind: Job, metadata: {name: j}}`, "namespaceResourceBlacklist"},
		{"a cluster-scoped kind", narrow, `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`, "clusterResourceWhitelist"},
		{"an unknown kind", project.Anything(), `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}`, "does not serve this kind"},
		{"too large", project.Anything(), strings.Replace(cm, "k: v", "k: "+strings.Repeat("x", 2<<20), 1), "is 2.1 MB large; the API server takes 1.5 MB"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := prepared(t, c.rules, c.text).objects[0].problem
			if (got == nil) != (c.want == "") || got != nil && (!strings.Contains(got.Error(), c.want) || !strings.Contains(got.Error(), "file0.yaml")) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
	p := preparationForTest(project.Anything())
	p.app.Spec.Destination.Namespace = ""
	set, err := p.prepare(manifests(t, cm))
	if err != nil || set.objects[0].problem == nil || !strings.Contains(set.objects[0].problem.Error(), "has no namespace") {
		t.Errorf("without a namespace: %v, %v", set, err)
	}
	if _, err := p.prepare(manifests(t, `{apiVersion: broken.example.com/v1, kind: X, metadata: {name: x}}`)); err == nil {
		t.Error("a failed discovery is no error: the kind would count as not there")
	}
}

func TestC020DefinitionInTheSameRendering(t *testing.T) {
	crd := func(scope string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com},
		  spec: {group: example.com, scope: ` + scope + `, names: {kind: Widget}, versions: [{name: v1}]}}`
	}
	widget := `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: other}}`
	for scope, ns := range map[string]string{"Namespaced": "other", "Cluster": ""} {
		set := prepared(t, project.Anything(), widget, crd(scope))
		d := set.objects[0]
		if d.problem != nil || d.resource.Resource != "" || d.key.Namespace != ns || !set.stale {
			t.Errorf("%s: problem %v, resource %v, key %s, stale %v", scope, d.problem, d.resource, d.key, set.stale)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	key := manifest.Key{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "a"}
	for id, want := range map[string]string{
		"shop:apps/Deployment:web/a":    "shop",
		"ns_shop:apps/Deployment:web/a": "ns_shop",
		"shop:apps/Deployment:web/b":    "", // copied from another object
		"shop:apps/Deployment:db/a":     "",
		"shop:apps/StatefulSet:web/a":   "",
		"shop:/Deployment:web/a":        "",
		"shop":                          "", "": "", "shop:apps/Deployment": "", "shop:apps/Deployment:a": "",
	} {
		if got := ownerOf(id, key); got != want {
			t.Errorf("ownerOf(%q) = %q, want %q", id, got, want)
		}
	}
	if got := ownerOf("shop:/Namespace:web/n", manifest.Key{Kind: "Namespace", Name: "n"}); got != "shop" {
		t.Errorf("a cluster-scoped object belongs to %q", got)
	}
}
