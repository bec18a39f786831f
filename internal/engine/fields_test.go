package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/crds"
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// badField is an Application with one field that can not be right.
type badField struct {
	path   string // as people write it: spec.sources[1].path
	how    string
	object map[string]any // the whole spec
	// refused tells that the definition's schema does not let it through.
	refused bool
}

// Every field of the definition with a value of another type, a text that is too long, and, where it is a pattern, one that
// is none: the API server refuses it or a condition says so, both by the field's path; an application next to it goes on.
func TestBadFieldsOfTheDefinition(t *testing.T) {
	w := newWorld(t)
	repo := w.fieldsRepo()
	w.app("fine", v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: "app"})
	w.settled("fine", "")
	var admitted []badField
	for _, bad := range w.badFields(t, repo.URL()) {
		if !bad.refused {
			admitted = append(admitted, bad)
			continue
		}
		_, err := w.apps().Create(t.Context(), w.application("refused", bad.object), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), bad.path) {
			t.Errorf("%s (%s): %v; want a refusal that names the field", bad.path, bad.how, err)
		}
	}
	if len(admitted) < 100 {
		t.Fatalf("only %d fields were tried", len(admitted))
	}
	w.expectConditions(admitted)
	sha := w.commit(repo, map[string]string{"app/cm.yaml": configMap("fine", "2")})
	w.settled("fine", sha)
}

// The same where the definition lets everything through, as one that is older or made by hand may.
func TestBadFieldsPastTheDefinition(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of its own")
	}
	w := newWorldOn(t, ownCluster(t))
	w.loosen()
	repo := w.fieldsRepo()
	w.app("fine", v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: "app"})
	w.settled("fine", "")
	var past []badField
	for _, bad := range w.badFields(t, repo.URL()) {
		if bad.refused {
			past = append(past, bad)
		}
	}
	if len(past) < 100 {
		t.Fatalf("only %d fields were tried", len(past))
	}
	w.expectConditions(past)
	// One that runs and gets a bad field keeps what it has, and goes on when the field is right again.
	w.patchApp("fine", `{"spec":{"source":{"path":17}}}`)
	w.until("fine says what is wrong", func() (string, bool) {
		u, err := w.apps().Get(t.Context(), w.real("fine"), metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		said := conditions(u)
		return said, strings.Contains(said, "spec.source.path: is a number; text is expected")
	})
	if _, there := w.configMap("fine"); !there {
		t.Error("an object went away with a bad field")
	}
	sha := w.commit(repo, map[string]string{"app/cm.yaml": configMap("fine", "2")})
	w.patchApp("fine", `{"spec":{"source":{"path":"app"}}}`)
	w.settled("fine", sha)
}

func (w *world) fieldsRepo() *gitserver.Repo {
	return w.repo("fields", map[string]string{
		"app/cm.yaml": configMap("fine", "1"), "chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\n", "chart/templates/cm.yaml": configMap("chart", "1"),
	})
}

// badFields goes through the schema of the definition.
func (w *world) badFields(t *testing.T, url string) []badField {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.GetName() != "applications.argoproj.io" {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		spec, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
		g := &generator{url: url, namespace: w.dest}
		g.walk(spec, nil)
		return g.found
	}
	t.Fatal("no definition of Application")
	return nil
}

func (w *world) application(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": w.real(name), "namespace": w.control}, "spec": spec,
	}}
}

// expectConditions creates the applications and waits until a condition of each names its field.
func (w *world) expectConditions(list []badField) {
	w.t.Helper()
	waiting := map[string]badField{}
	var group errgroup.Group
	group.SetLimit(8)
	for i, bad := range list {
		u := w.application(fmt.Sprintf("bad%d", i), bad.object)
		waiting[u.GetName()] = bad
		group.Go(func() error {
			if _, err := w.apps().Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("%s (%s): %w", bad.path, bad.how, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		w.t.Fatal(err)
	}
	said := map[string]string{}
	defer func() {
		for name, bad := range waiting {
			w.t.Errorf("%s (%s): no condition names it: %s", bad.path, bad.how, said[name])
		}
	}()
	w.until("conditions of all bad fields", func() (string, bool) {
		all, err := w.apps().List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		for i := range all.Items {
			name := all.Items[i].GetName()
			bad, ok := waiting[name]
			if said[name] = conditions(&all.Items[i]); ok && strings.Contains(said[name], bad.path) {
				delete(waiting, name)
			}
		}
		return fmt.Sprintf("%d are missing", len(waiting)), len(waiting) == 0
	})
}

// conditions are all messages of an Application, which may hold what our types can not read.
func conditions(u *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var out []string
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			out = append(out, fmt.Sprintf("%v: %v", m["type"], m["message"]))
		}
	}
	return strings.Join(out, "; ")
}

// loosen takes the schema out of the definition of Application.
func (w *world) loosen() {
	w.t.Helper()
	definitions := w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	patch(w, definitions, "applications.argoproj.io",
		`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}]`)
	w.until("the definition lets everything through", func() (string, bool) {
		_, err := w.apps().Create(w.t.Context(), w.application("loose", map[string]any{"project": int64(1)}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err == nil
	})
}

// Annotations that steer a sync and mean nothing: the condition names object and value, and everything else is as it was.
func TestMisreadAnnotations(t *testing.T) {
	w := newWorld(t)
	annotated := func(name, key, value string) string {
		return strings.Replace(configMap(name, "1"), "metadata: {", fmt.Sprintf("metadata: {annotations: {%s: %q}, ", key, value), 1)
	}
	r := w.repo("m", map[string]string{
		"app/a.yaml": annotated("a", "argocd.argoproj.io/sync-wave", "first"),
		"app/b.yaml": annotated("b", "argocd.argoproj.io/sync-wave", "2"),
	})
	w.app("m", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("m", "")
	t.Log(w.condition("m", v1alpha1.ConditionUnsupportedWarning, "ConfigMap", "/a", "sync-wave", `"first"`))
}
