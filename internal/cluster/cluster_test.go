package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

const tracking = "example.com/owner"

// site is a namespace of the real API server and a cluster that looks at it.
type site struct {
	t       *testing.T
	ns      string
	client  dynamic.Interface
	cluster *cluster.Cluster

	mu      sync.Mutex
	changes []cluster.Change
}

func newSite(t *testing.T, change ...func(*rest.Config)) *site {
	t.Helper()
	return newSiteWith(t, func(o *cluster.Options) {
		for _, f := range change {
			f(o.REST)
		}
	})
}

func newSiteWith(t *testing.T, tune func(*cluster.Options)) *site {
	t.Helper()
	c := env.Cluster(t)
	client, err := dynamic.NewForConfig(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, ns: env.Namespace(t, c), client: client}
	o := cluster.Options{
		REST: c.REST(), Log: slog.New(slog.DiscardHandler), SyncTimeout: 3 * time.Second,
		Read: func(u *unstructured.Unstructured) cluster.Live {
			l := cluster.Identity(u)
			l.Tracking = u.GetAnnotations()[tracking]
			l.Owner = l.Tracking
			return l
		},
		OnChange: func(ch cluster.Change) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changes = append(s.changes, ch)
		},
	}
	tune(&o)
	s.cluster, err = cluster.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.cluster.Start(context.Background()) // ended by Stop
	t.Cleanup(s.cluster.Stop)
	return s
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func configMapKind() schema.GroupKind { return schema.GroupKind{Kind: "ConfigMap"} }

func (s *site) key(name string) manifest.Key {
	return manifest.Key{Kind: "ConfigMap", Namespace: s.ns, Name: name}
}

// create makes a ConfigMap, with an owner's mark if there is one.
func (s *site) create(name, owner string) *unstructured.Unstructured {
	s.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetName(name)
	if owner != "" {
		u.SetAnnotations(map[string]string{tracking: owner})
	}
	out, err := s.client.Resource(configMaps()).Namespace(s.ns).Create(s.t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *site) until(what string, cond func() bool) {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-deadline:
			s.t.Fatalf("%s: not within 20 s", what)
		case <-time.After(10 * time.Millisecond): // between two looks at a condition
		}
	}
}

func (s *site) watch(gk schema.GroupKind) {
	s.t.Helper()
	if err := s.cluster.Watch(s.t.Context(), gk); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) lookup(name string) (cluster.Live, bool) {
	s.t.Helper()
	l, ok, err := s.cluster.Lookup(s.t.Context(), s.key(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return l, ok
}

// told tells whether a change of the object came that satisfies f.
func (s *site) told(name string, f func(cluster.Change) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.changes, func(c cluster.Change) bool { return c.Key == s.key(name) && f(c) })
}

func TestWatchOnDemand(t *testing.T) {
	s := newSite(t)
	if _, _, err := s.cluster.Lookup(t.Context(), s.key("a")); err == nil {
		t.Error("a kind that is not watched answers")
	}
	if s.cluster.Exists(s.key("a")) {
		t.Error("an object of a kind that is not watched exists")
	}
	s.create("tracked", "app")
	s.create("wanted", "")
	s.create("other", "")
	wanted := []manifest.Key{s.key("wanted"), s.key("later")}
	s.cluster.Want(wanted)
	s.watch(configMapKind())
	for name, want := range map[string]bool{"tracked": true, "wanted": true, "other": true, "later": false} {
		if _, ok := s.lookup(name); ok != want || s.cluster.Exists(s.key(name)) != want {
			t.Errorf("%s: found is %v", name, ok)
		}
	}
	anything := func(cluster.Change) bool { return true }
	if !s.told("tracked", anything) || !s.told("wanted", anything) || s.told("other", anything) {
		t.Errorf("told of %v", s.changes)
	}
	if owned := s.cluster.Owned("app"); len(owned) != 1 || owned[0].Key != s.key("tracked") {
		t.Errorf("owned: %v", owned)
	}
	s.create("later", "")
	s.until("the object wanted appears", func() bool { _, ok := s.lookup("later"); return ok })
	if err := s.client.Resource(configMaps()).Namespace(s.ns).Delete(t.Context(), "later", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("its end is told", func() bool {
		return s.told("later", func(c cluster.Change) bool { return c.Now.UID == "" && c.Old.UID != "" })
	})
	if _, ok := s.lookup("later"); ok {
		t.Error("a deleted object is found")
	}
}

// An object that became interesting after it was seen is read once, and kept when it is wanted.
func TestLookupOfWhatIsNotKept(t *testing.T) {
	s := newSite(t)
	s.create("plain", "")
	s.watch(configMapKind())
	s.cluster.Want([]manifest.Key{s.key("plain")})
	if l, ok := s.lookup("plain"); !ok || l.Key != s.key("plain") || l.UID == "" {
		t.Fatalf("got %+v, %v", l, ok)
	}
	client := s.client.Resource(configMaps()).Namespace(s.ns)
	if err := client.Delete(t.Context(), "plain", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("it is told of from now on", func() bool { return s.told("plain", func(c cluster.Change) bool { return c.Now.UID == "" }) })
	s.cluster.Unwant([]manifest.Key{s.key("plain")})
	s.create("plain", "")
	s.until("it is seen", func() bool { return s.cluster.Exists(s.key("plain")) })
	appeared := 0
	s.told("plain", func(c cluster.Change) bool {
		if c.Old.UID == "" {
			appeared++
		}
		return false
	})
	if appeared != 1 {
		t.Errorf("told %d times that it appeared, want once: nobody wants the second", appeared)
	}
}

func TestObserveIsAheadOfTheWatch(t *testing.T) {
	s := newSite(t)
	s.cluster.Observe(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}) // of no watched kind: nothing
	s.watch(configMapKind())
	made := s.create("a", "app")
	s.cluster.Observe(made)
	if l, ok := s.lookup("a"); !ok || l.ResourceVersion != made.GetResourceVersion() {
		t.Errorf("got %+v, %v", l, ok)
	}
}

func TestKinds(t *testing.T) {
	s := newSite(t)
	kind := func(group, version, name string) (cluster.Resource, error) {
		return s.cluster.Kind(schema.GroupVersionKind{Group: group, Version: version, Kind: name})
	}
	d, err := kind("apps", "v1", "Deployment")
	if err != nil || d.Resource != "deployments" || !d.Namespaced || !d.Patchable || !d.Watchable {
		t.Errorf("Deployment: %+v, %v", d, err)
	}
	if r, err := kind("authorization.k8s.io", "v1", "SubjectAccessReview"); err != nil || r.Patchable || r.Watchable || r.Namespaced {
		t.Errorf("SubjectAccessReview: %+v, %v", r, err)
	}
	if r, err := kind("apps", "", "Deployment"); err != nil || r.Version != "v1" {
		t.Errorf("without a version: %+v, %v", r, err)
	}
	_, err = kind("apps", "v1beta1", "Deployment")
	if !errors.Is(err, cluster.ErrNoKind) || !strings.Contains(err.Error(), "it serves v1") {
		t.Errorf("a version that is gone: %v", err)
	}
	_, err = kind("example.com", "v1", "Nonsense")
	if !errors.Is(err, cluster.ErrNoKind) || !strings.Contains(err.Error(), "kind Nonsense of example.com/v1") || !strings.Contains(err.Error(), "CustomResourceDefinition") {
		t.Errorf("an unknown kind: %v", err)
	}
	if err := s.cluster.Watch(t.Context(), schema.GroupKind{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}); err == nil {
		t.Error("a kind that can't be listed is watched")
	}
	if err := s.cluster.Watch(t.Context(), schema.GroupKind{Group: "example.com", Kind: "Nonsense"}); !errors.Is(err, cluster.ErrNoKind) {
		t.Errorf("watch of an unknown kind: %v", err)
	}
	version, apis, err := s.cluster.Capabilities()
	if err != nil || !strings.HasPrefix(version, "v") || !slices.Contains(apis, "apps/v1") || !slices.Contains(apis, "apps/v1/Deployment") || !slices.IsSorted(apis) {
		t.Errorf("capabilities %s, %v, %v", version, apis, err)
	}
}

func TestDefinitionAppears(t *testing.T) {
	s := newSite(t)
	group := s.ns + ".example.com"
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
	if _, err := s.cluster.Kind(gvk); !errors.Is(err, cluster.ErrNoKind) {
		t.Fatalf("before: %v", err)
	}
	crd := &unstructured.Unstructured{}
	text := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.` + group + `}, spec: {group: ` + group + `,
	  scope: Namespaced, names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList},
	  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}}`
	if err := yaml.Unmarshal([]byte(text), &crd.Object); err != nil {
		t.Fatal(err)
	}
	crds := s.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = crds.Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{}) // the test's context has ended
	})
	s.until("the kind is found", func() bool {
		s.cluster.Invalidate()
		r, err := s.cluster.Kind(gvk)
		return err == nil && r.Resource == "widgets" && r.Namespaced
	})
	s.watch(gvk.GroupKind())
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "CANARY", "colour": "CANARY"}}}
	widget.SetGroupVersionKind(gvk)
	widget.SetName("w")
	s.until("its schema is known", func() bool {
		s.cluster.Invalidate()
		return s.cluster.Check(widget) != nil
	})
	err := s.cluster.Check(widget)
	for _, part := range []string{"spec.size: expected numeric", "spec.colour: is no field of this kind"} {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

func TestCheck(t *testing.T) {
	s := newSite(t)
	cases := []struct{ name, text, want string }{
		{"right", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}`, ""},
		{"C060 a number as a text", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {pw: 4711}}`, "stringData.pw: expected string"},
		{"a text as a map", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: "4711\nCANARY"}`, "data: expected map"},
		{"unknown", `{apiVersion: v1, kind: Secret, metadata: {name: a}, dada: {pw: CANARY}}`, "dada: is no field of this kind"},
		{"two faults", `{apiVersion: v1, kind: ConfigMap, data: {a: true}, metadata: {labels: {b: 4711}}}`,
			"data.a: expected string; metadata.labels.b: expected string"},
		{"unknown fields at all depths, whatever is met first",
			`{apiVersion: v1, kind: Pod, extra: {a: CANARY}, metadata: {lables: {a: b}}, spec: {containers: [{name: c, imagepullpolicy: Always, image: 1, tyt: true}]}}`,
			`extra: is no field of this kind; metadata.lables: is no field of this kind; spec.containers[name="c"].image: expected string; ` +
				`spec.containers[name="c"].imagepullpolicy: is no field of this kind; spec.containers[name="c"].tyt: is no field of this kind`},
		{"C016 the same key twice", `{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, env: [{name: MODE, value: CANARY}, {name: MODE, value: b}]}]}}`,
			`spec.containers[name="c"].env: duplicate entries for key [name="MODE"]`},
		{"no schema", `{apiVersion: example.com/v1, kind: Unknown, spec: {a: CANARY}}`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.text), &u.Object); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := s.cluster.Check(u); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A kind that may not be listed says so and since when; other kinds do not notice.
func TestKindThatCanNotBeListed(t *testing.T) {
	s := newSite(t, func(c *rest.Config) {
		c.Impersonate = rest.ImpersonationConfig{UserName: "reader-of-config-maps", Groups: []string{"system:authenticated"}}
	})
	s.allow("reader-of-config-maps")
	began := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	err := s.cluster.Watch(t.Context(), schema.GroupKind{Kind: "Secret"})
	if err == nil || !strings.Contains(err.Error(), "kind Secret can't be listed since ") || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("got %v", err)
	} else if _, since, _ := strings.Cut(err.Error(), "since "); since < began {
		t.Errorf("%v is too early", err)
	}
	s.watch(configMapKind())
	s.create("a", "app")
	s.until("the other kind works", func() bool { _, ok := s.lookup("a"); return ok })
}

// allow lets a user list ConfigMaps everywhere.
func (s *site) allow(user string) {
	s.t.Helper()
	name := s.ns + "-reader"
	rbac := func(resource string) dynamic.ResourceInterface {
		return s.client.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource})
	}
	for resource, text := range map[string]string{
		"clusterroles": `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: ` + name + `}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]}`,
		"clusterrolebindings": `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: ` + name + `},
		  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + name + `}, subjects: [{kind: User, name: ` + user + `, apiGroup: rbac.authorization.k8s.io}]}`,
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			s.t.Fatal(err)
		}
		if _, err := rbac(resource).Create(s.t.Context(), u, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() {
			_ = rbac(resource).Delete(context.Background(), name, metav1.DeleteOptions{}) // the test's context has ended
		})
	}
}

func TestStop(t *testing.T) {
	s := newSite(t)
	s.watch(configMapKind())
	s.cluster.Stop()
	s.cluster.Stop()
	if err := s.cluster.Watch(t.Context(), schema.GroupKind{Kind: "Secret"}); err == nil {
		t.Error("a watch began after the stop")
	}
}

func TestUnreachableServer(t *testing.T) {
	s := newSite(t, func(c *rest.Config) { c.Host = "https://127.0.0.1:1" })
	_, err := s.cluster.Kind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err == nil || errors.Is(err, cluster.ErrNoKind) {
		t.Errorf("got %v: an error does not mean that a kind is not there", err)
	}
	if _, _, err := s.cluster.Capabilities(); err == nil {
		t.Error("capabilities of a server that does not answer")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.cluster.Watch(ended, configMapKind()); err == nil {
		t.Error("no error of the watch")
	}
}
