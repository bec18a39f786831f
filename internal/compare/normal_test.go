package compare_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

// server is a kind of the real API server, in a namespace of its own.
type server struct {
	t      *testing.T
	ns     string
	client dynamic.ResourceInterface
}

func serve(t *testing.T, group, resource string) *server {
	t.Helper()
	c := env.Cluster(t)
	client, err := dynamic.NewForConfig(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	ns := env.Namespace(t, c)
	return &server{t: t, ns: ns, client: client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).Namespace(ns)}
}

func (s *server) patch(manager string, dry bool, text string) *unstructured.Unstructured {
	s.t.Helper()
	u := object(s.t, text)
	body, err := json.Marshal(u.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	force := true
	opts := metav1.PatchOptions{FieldManager: manager, Force: &force}
	if dry {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	out, err := s.client.Patch(s.t.Context(), u.GetName(), types.ApplyPatchType, body, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// apply is an apply of ours.
func (s *server) apply(text string) *unstructured.Unstructured {
	s.t.Helper()
	return s.patch(compare.Manager, false, text)
}

// edit is a merge patch of somebody else.
func (s *server) edit(name, patch string) *unstructured.Unstructured {
	s.t.Helper()
	out, err := s.client.Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// paths are the differences between text and the object as it is; nil when there are none.
func (s *server) paths(text string) []string {
	s.t.Helper()
	normal := s.patch(compare.Manager, true, text)
	live, err := s.client.Get(s.t.Context(), normal.GetName(), metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	verdict, paths, err := compare.WithNormal(compare.Sides{Normal: normal, Live: live})
	if err != nil {
		s.t.Fatal(err)
	}
	if (verdict == compare.Different) != (len(paths) > 0) || verdict != compare.Different && verdict != compare.Equal {
		s.t.Fatalf("verdict %d with the paths %v", verdict, paths)
	}
	return paths
}

func (s *server) same(what, text string) {
	s.t.Helper()
	if got := s.paths(text); got != nil {
		s.t.Errorf("%s: differs at %v", what, got)
	}
}

func (s *server) differs(what, text string, want ...string) {
	s.t.Helper()
	if d := cmp.Diff(want, s.paths(text)); d != "" {
		s.t.Errorf("%s (-want +got)\n%s", what, d)
	}
}

// pod is a Deployment without replicas whose pods have one container.
func pod(container, more string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 0, selector: {matchLabels: {app: d}},
	  template: {metadata: {labels: {app: d}}, spec: {` + more + ` containers: [{name: c, image: i, ` + container + `}]}}}}`
}

func TestC014Quantities(t *testing.T) {
	s := serve(t, "apps", "statefulsets")
	set := func(cpu, storage string) string {
		return `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: q}, spec: {replicas: 0, serviceName: q, selector: {matchLabels: {app: q}},
		  template: {metadata: {labels: {app: q}}, spec: {containers: [{name: c, image: i,
		    resources: {requests: {cpu: ` + cpu + `, memory: 1000M}, limits: {cpu: "1.5", memory: 1024Mi}}}]}},
		  volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: ` + storage + `}}}}]}}`
	}
	s.apply(set("1000m", "1024Mi"))
	s.same("as applied", set("1000m", "1024Mi"))
	s.same("another spelling of the same", set(`"1"`, "1Gi"))
	s.differs("a real change", set("1001m", "1024Mi"), `.spec.template.spec.containers[name="c"].resources.requests.cpu`)
}

func TestC016DoubleVariables(t *testing.T) {
	s := serve(t, "apps", "deployments")
	twice := object(t, pod(`env: [{name: MODE, value: one}, {name: ZONE, value: z}, {name: MODE, value: two}]`, ""))
	if _, err := s.client.Create(t.Context(), twice, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	once := pod(`env: [{name: ZONE, value: z}, {name: MODE, value: two}]`, "")
	if got := s.paths(once); got == nil {
		t.Error("an object with a variable twice is in step with one that has it once")
	}
	s.apply(once)
	s.same("after one apply", once)
	live, err := s.client.Get(t.Context(), "d", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	containers, _, err := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"name": "ZONE", "value": "z"}, map[string]any{"name": "MODE", "value": "two"}}
	if d := cmp.Diff(want, containers[0].(map[string]any)["env"]); d != "" {
		t.Errorf("variables (-want +got)\n%s", d)
	}
}

func TestDefaultsAndForeignFields(t *testing.T) {
	s := serve(t, "", "services")
	svc := func(rest string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {ours: a}}, spec: {selector: {app: s}, ports: [{port: 80` + rest + `}]}}`
	}
	s.apply(svc(""))
	s.same("defaults of the server", svc(""))
	s.same("defaults written out", svc(", protocol: TCP, targetPort: 80"))
	s.differs("another port behind it", svc(", targetPort: 8080"), `.spec.ports[port=80,protocol="TCP"].targetPort`)
	s.edit("s", `{"metadata":{"annotations":{"theirs":"b"},"labels":{"x":"y"}}}`)
	s.same("annotations and labels of somebody", svc(""))
	s.edit("s", `{"metadata":{"annotations":{"ours":"changed"}}}`)
	s.differs("our annotation changed", svc(""), ".metadata.annotations.ours")
	s.edit("s", `{"metadata":{"annotations":{"ours":null}}}`)
	s.differs("our annotation removed", svc(""), ".metadata.annotations.ours")
}

func TestFieldDroppedFromGit(t *testing.T) {
	s := serve(t, "apps", "deployments")
	s.apply(pod(`env: [{name: A, value: "1"}, {name: B, value: "2"}], args: [x]`, "hostNetwork: true,"))
	less := pod(`env: [{name: A, value: "1"}]`, "")
	got := s.paths(less)
	for _, want := range []string{`.spec.template.spec.containers[name="c"].env[name="B"]`, ".spec.template.spec.hostNetwork", `.spec.template.spec.containers[name="c"].args`} {
		found := false
		for _, p := range got {
			found = found || strings.HasPrefix(p, want)
		}
		if !found {
			t.Errorf("%s is not among %v", want, got)
		}
	}
	s.apply(less)
	s.same("after the apply", less)
}

func TestLists(t *testing.T) {
	s := serve(t, "apps", "deployments")
	names := func(list ...string) string {
		return pod("", "initContainers: ["+strings.Join(list, ", ")+"], ")
	}
	a, b := "{name: a, image: i}", "{name: b, image: i}"
	s.apply(names(a, b))
	s.same("as applied", names(a, b))
	s.differs("init containers in another order", names(b, a), ".spec.template.spec.initContainers")
	s.apply(names(b, a))
	s.same("after the apply", names(b, a))

	s.apply(pod("args: [p, q]", "initContainers: ["+a+"],"))
	s.same("an atomic list", pod("args: [p, q]", "initContainers: ["+a+"],"))
	s.differs("an atomic list in another order", pod("args: [q, p]", "initContainers: ["+a+"],"), `.spec.template.spec.containers[name="c"].args`)
}

func TestSets(t *testing.T) {
	s := serve(t, "", "configmaps")
	cm := func(finalizers string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: f, finalizers: [` + finalizers + `]}, data: {k: v}}`
	}
	s.apply(cm("example.com/a, example.com/b"))
	t.Cleanup(func() { s.cleanUp("f") })
	s.same("as applied", cm("example.com/a, example.com/b"))
	s.same("in another order", cm("example.com/b, example.com/a"))
	s.edit("f", `{"metadata":{"finalizers":["example.com/theirs","example.com/a","example.com/b"]}}`)
	s.same("with one of somebody", cm("example.com/a, example.com/b"))
	s.differs("with one more", cm("example.com/a, example.com/b, example.com/c"), `.metadata.finalizers[="example.com/c"]`)
	s.edit("f", `{"metadata":{"finalizers":["example.com/a"]}}`)
	s.differs("one removed", cm("example.com/a, example.com/b"), `.metadata.finalizers[="example.com/b"]`)
}

// cleanUp takes finalizers away, so that the namespace can go.
func (s *server) cleanUp(name string) {
	// The test's context has ended.
	_, err := s.client.Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		s.t.Error(err)
	}
}

// The steady state: our own entry tells of every change, and of one that was changed back.
func TestEntryHashTellsOfEveryTouch(t *testing.T) {
	s := serve(t, "", "configmaps")
	text := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, l: w}}`
	hash := func(u *unstructured.Unstructured) string { return compare.EntryHash(u.GetManagedFields()) }
	first := hash(s.apply(text))
	if again := hash(s.apply(text)); again != first {
		t.Error("the same apply made another entry")
	}
	if foreign := hash(s.edit("a", `{"data":{"m":"x"},"metadata":{"labels":{"a":"b"}}}`)); foreign != first {
		t.Error("a field of somebody changed our entry")
	}
	if touched := hash(s.edit("a", `{"data":{"k":"changed"}}`)); touched == first {
		t.Error("a change of our field is not seen")
	}
	if back := hash(s.edit("a", `{"data":{"k":"v"}}`)); back == first {
		t.Error("a change that was changed back is not seen")
	}
	if put := hash(s.apply(text)); put != first {
		t.Error("after an apply the entry is not as before")
	}
	if gone := hash(s.edit("a", `{"data":{"l":null}}`)); gone == first {
		t.Error("a field that was removed is not seen")
	}
}
