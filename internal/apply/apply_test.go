package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// site is a namespace of the real API server with a writer.
type site struct {
	t      *testing.T
	ns     string
	writer *apply.Writer
	client dynamic.Interface
}

func newSite(t *testing.T) *site {
	t.Helper()
	c := env.Cluster(t)
	w, err := apply.New(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, ns: env.Namespace(t, c), writer: w, client: client}
}

func core(resource string) apply.Target {
	return apply.Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespaced: true, Patchable: true}
}

func of(group, resource string) apply.Target {
	return apply.Target{Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Namespaced: true, Patchable: true}
}

func (s *site) apply(target apply.Target, m apply.Mode, text string) (*unstructured.Unstructured, error) {
	s.t.Helper()
	u := parse(s.t, text)
	if target.Namespaced {
		u.SetNamespace(s.ns)
	}
	body, err := json.Marshal(u.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.writer.Apply(s.t.Context(), target, manifest.KeyOf(u), body, m)
}

func (s *site) get(target apply.Target, name string) (*unstructured.Unstructured, error) {
	return s.client.Resource(target.Resource).Namespace(s.ns).Get(s.t.Context(), name, metav1.GetOptions{})
}

func (s *site) data(name string) map[string]string {
	s.t.Helper()
	u, err := s.get(core("configmaps"), name)
	if err != nil {
		s.t.Fatal(err)
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func TestApplyTakesOverAndLeavesTheRest(t *testing.T) {
	s := newSite(t)
	other := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {shared: theirs, own: theirs}}`)
	if _, err := s.client.Resource(core("configmaps").Resource).Namespace(s.ns).Create(t.Context(), other, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	out, err := s.apply(core("configmaps"), apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {shared: ours, new: ours}}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"shared": "ours", "own": "theirs", "new": "ours"}, s.data("a")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if out.GetResourceVersion() == "" || len(out.GetManagedFields()) == 0 {
		t.Error("the answer is not the object as it is")
	}
	if _, err := s.apply(core("configmaps"), apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {shared: ours}}`); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"shared": "ours", "own": "theirs"}, s.data("a")); d != "" {
		t.Errorf("after a field left (-want +got)\n%s", d)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	s := newSite(t)
	out, err := s.apply(core("configmaps"), apply.Mode{DryRun: true}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}`)
	if err != nil || out.GetName() != "a" {
		t.Fatalf("answer %v, %v", out, err)
	}
	if _, err := s.get(core("configmaps"), "a"); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v", err)
	}
}

// A refusal names the object and the field, and no value in any form.
func TestC060RefusalsShowNoValue(t *testing.T) {
	s := newSite(t)
	job := func(value string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never,
		  containers: [{name: c, image: i, env: [{name: PW, value: ` + value + `}]}]}}}}`
	}
	if _, err := s.apply(of("batch", "jobs"), apply.Mode{}, job("before")); err != nil {
		t.Fatal(err)
	}
	deployment := func(env string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {app: d}},
		  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: i, env: [` + env + `]}]}}}}`
	}
	secret := func(rest string) string { return `{apiVersion: v1, kind: Secret, metadata: {name: bad}, ` + rest + `}` }
	cases := []struct {
		name   string
		target apply.Target
		text   string
		says   string
	}{
		{"number in stringData", core("secrets"), secret(`stringData: {pw: CANARY, num: 4711}`), "stringData.num: expected string"},
		{"number in data", core("secrets"), secret(`data: {num: 4711}`), "data.num: expected string"},
		{"list in data", core("secrets"), secret(`data: {list: [CANARY]}`), "data.list: expected string"},
		{"text as data", core("secrets"), secret(`data: "CANARY\n  .x: CANARY"`), "data: expected map"},
		{"no base64", core("secrets"), secret(`data: {pw: "CANARY!"}`), "illegal base64 data"},
		{"no JSON", core("secrets"), secret(`type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: Q0FOQVJZ}`), "data[.dockerconfigjson]: Invalid value: "},
		{"label", core("secrets"), `{apiVersion: v1, kind: Secret, metadata: {name: bad, labels: {x: "CANARY: 4711"}}}`, "metadata.labels: Invalid value: "},
		{"immutable template", of("batch", "jobs"), job("CANARY"), "spec.template: Invalid value: field is immutable"},
		{"number in env", of("apps", "deployments"), deployment(`{name: PW, value: 4711}`), `env[name="PW"].value: expected string`},
		{"C016 double env", of("apps", "deployments"), deployment(`{name: MODE, value: a}, {name: MODE, value: CANARY}`),
			`containers[name="c"].env: duplicate entries for key [name="MODE"]`},
		{"unknown field", of("apps", "deployments"), deployment(`{name: PW, valu: CANARY}`), `env[name="PW"].valu: is no field of this kind`},
		{"wrong type", of("apps", "deployments"), `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: CANARY}}`,
			"spec.replicas: expected numeric (int or float), got string"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.apply(c.target, apply.Mode{}, c.text)
			var refused *apply.Error
			if !errors.As(err, &refused) || refused.Retry {
				t.Fatalf("got %v (%T), want a refusal that lasts", err, err)
			}
			if !strings.Contains(refused.Reason, c.says) || !strings.HasPrefix(err.Error(), refused.Object.String()+": ") {
				t.Errorf("%v does not say %q", err, c.says)
			}
			for _, value := range []string{"CANARY", "Q0FOQVJZ", "4711"} {
				if strings.Contains(err.Error(), value) {
					t.Errorf("%v shows %s", err, value)
				}
			}
		})
	}
}

func TestMissingNamespace(t *testing.T) {
	s := newSite(t)
	s.ns += "-away"
	_, err := s.apply(core("configmaps"), apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	if err == nil || !strings.Contains(err.Error(), "namespace "+s.ns+" does not exist; create it or set the sync option CreateNamespace=true") {
		t.Errorf("got %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	s := newSite(t)
	for _, size := range []int{2 << 20, 5 << 20} { // more than etcd takes, more than the API server takes
		_, err := s.apply(core("configmaps"), apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: big}, data: {k: "`+strings.Repeat("x", size)+`"}}`)
		if err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "ConfigMap/"+s.ns+"/big: ") {
			t.Fatalf("%d bytes: got %.500v", size, err)
		}
		if !strings.Contains(err.Error(), "oo l") { // "is too large", "Too long"
			t.Errorf("%d bytes: %v does not say that it is too large", size, err)
		}
	}
}

func TestKindsThatCanOnlyBeCreated(t *testing.T) {
	s := newSite(t)
	review := of("authorization.k8s.io", "subjectaccessreviews")
	review.Namespaced, review.Patchable = false, false
	out, err := s.apply(review, apply.Mode{}, `{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, metadata: {},
	  spec: {user: nobody, resourceAttributes: {verb: get, resource: pods}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, asked, _ := unstructured.NestedBool(out.Object, "status", "allowed"); !asked {
		t.Errorf("the answer %v has no status", out.Object)
	}
	once := core("configmaps")
	once.Patchable = false
	for i, taken := range []bool{false, true} {
		if _, err := s.apply(once, apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {name: once}}`); apierrors.IsAlreadyExists(err) != taken || err != nil != taken {
			t.Errorf("create number %d: %v", i+1, err)
		}
	}
	generated, err := s.apply(core("configmaps"), apply.Mode{}, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: made-}}`)
	if err != nil || !strings.HasPrefix(generated.GetName(), "made-") {
		t.Errorf("generateName: %v, %v", generated, err)
	}
}

func TestDeleteRefusesWhatChanged(t *testing.T) {
	s := newSite(t)
	text := func(v string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: "` + v + `"}}`
	}
	seen, err := s.apply(core("configmaps"), apply.Mode{}, text("1"))
	if err != nil {
		t.Fatal(err)
	}
	gone := apply.Gone{Key: manifest.KeyOf(seen), UID: seen.GetUID(), ResourceVersion: seen.GetResourceVersion(), Propagation: metav1.DeletePropagationBackground}
	now, err := s.apply(core("configmaps"), apply.Mode{}, text("2"))
	if err != nil {
		t.Fatal(err)
	}
	remove := func(change func(*apply.Gone)) error {
		g := gone
		change(&g)
		return s.writer.Delete(t.Context(), core("configmaps"), g)
	}
	for name, change := range map[string]func(*apply.Gone){
		"an older version":  func(*apply.Gone) {},
		"another object":    func(g *apply.Gone) { g.UID, g.ResourceVersion = "11111111-1111-1111-1111-111111111111", "" },
		"an unknown object": func(g *apply.Gone) { g.UID = "" },
	} {
		if err := remove(change); !apierrors.IsConflict(err) || !strings.HasPrefix(err.Error(), "ConfigMap/"+s.ns+"/a: delete: ") {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
	current := func(g *apply.Gone) { g.ResourceVersion = now.GetResourceVersion() }
	if err := remove(func(g *apply.Gone) { current(g); g.DryRun = true }); err != nil {
		t.Error(err)
	}
	if got := s.data("a"); got["k"] != "2" {
		t.Errorf("what should still be there is %v", got)
	}
	if err := remove(current); err != nil {
		t.Error(err)
	}
	if _, err := s.get(core("configmaps"), "a"); !apierrors.IsNotFound(err) {
		t.Errorf("after the delete: %v", err)
	}
	if err := remove(current); err != nil {
		t.Errorf("what is gone already: %v", err)
	}
}

func TestNamespaceAndMerge(t *testing.T) {
	s := newSite(t)
	name := s.ns + "-made"
	namespaces := apply.Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Patchable: true}
	t.Cleanup(func() {
		_ = s.client.Resource(namespaces.Resource).Delete(context.Background(), name, metav1.DeleteOptions{}) // the test's context has ended
	})
	for _, labels := range []map[string]string{{"a": "1"}, {"a": "2"}, nil} {
		if err := s.writer.Namespace(t.Context(), name, labels, map[string]string{"note": "n"}); err != nil {
			t.Fatal(err)
		}
		u, err := s.client.Resource(namespaces.Resource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := u.GetLabels()["a"]; got != labels["a"] || u.GetAnnotations()["note"] != "n" {
			t.Errorf("labels %v, annotations %v", u.GetLabels(), u.GetAnnotations())
		}
	}
	key := manifest.Key{Kind: "Namespace", Name: name}
	out, err := s.writer.Merge(t.Context(), namespaces, key, []byte(`{"metadata":{"annotations":{"note":null,"b":"x"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"b": "x"}, out.GetAnnotations()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	_, err = s.writer.Merge(t.Context(), namespaces, manifest.Key{Kind: "Namespace", Name: name + "-away"}, []byte(`{}`))
	if !apierrors.IsNotFound(err) {
		t.Errorf("a merge into nothing: %v", err)
	}
}

func TestCreate(t *testing.T) {
	s := newSite(t)
	u := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	u.SetNamespace(s.ns)
	if err := s.writer.Create(t.Context(), core("configmaps"), u.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := s.writer.Create(t.Context(), core("configmaps"), u.DeepCopy()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second time: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	s := newSite(t)
	config := env.Cluster(t).REST()
	config.Host = "https://127.0.0.1:1"
	w, err := apply.New(config)
	if err != nil {
		t.Fatal(err)
	}
	key := manifest.Key{Kind: "ConfigMap", Namespace: s.ns, Name: "a"}
	_, err = w.Apply(t.Context(), core("configmaps"), key, []byte(`{}`), apply.Mode{})
	var refused *apply.Error
	if !errors.As(err, &refused) || !refused.Retry || !strings.Contains(err.Error(), "the API server does not answer") {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Apply(ended, core("configmaps"), key, []byte(`{}`), apply.Mode{}); !errors.Is(err, context.Canceled) || errors.As(err, &refused) {
		t.Errorf("after the end: %v", err)
	}
}
