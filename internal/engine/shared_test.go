package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

func namespace(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
}

func in(namespace, text string) string {
	return strings.Replace(text, "metadata: {", "metadata: {namespace: "+namespace+", ", 1)
}

// uidOf is the uid of an object in any namespace; empty when it is not there or is being deleted.
func (w *world) uidOf(gvr schema.GroupVersionResource, ns, name string) types.UID {
	w.t.Helper()
	u, err := w.client.Resource(gvr).Namespace(ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && u.GetDeletionTimestamp() != nil {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return u.GetUID()
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// C027: two applications declare one namespace. Both are warned; the deletion of one takes neither the namespace nor what
// the other has in it; afterwards nobody is warned. Also when only the one that goes declares the namespace.
func TestC027SharedNamespaceSurvives(t *testing.T) {
	for name, c := range map[string]struct {
		both, cascade bool
	}{"cascade": {true, true}, "without cascade": {true, false}, "namespace of one": {false, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shared := w.dest + "-shared"
			files := map[string]string{
				"a/ns.yaml": namespace(shared), "a/web.yaml": in(shared, deployment("a", "registry.k8s.io/pause:3.9", 1)),
				"b/web.yaml": in(shared, deployment("b", "registry.k8s.io/pause:3.9", 1)),
			}
			if c.both {
				files["b/ns.yaml"] = namespace(shared)
			}
			r := w.repo("s", files)
			w.app("a", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "a"}, func(a *v1alpha1.Application) {
				if c.cascade {
					cascading(a)
				}
			})
			w.until("a there", func() (string, bool) { return "", w.uidOf(deployments, shared, "a") != "" })
			w.app("b", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "b"})
			w.until("b there", func() (string, bool) { return operation(w.get("b")), w.uidOf(deployments, shared, "b") != "" })
			t.Cleanup(func() { _ = w.client.Resource(namespaces).Delete(t.Context(), shared, metav1.DeleteOptions{}) })
			if c.both {
				w.condition("a", v1alpha1.ConditionSharedResourceWarning, "Namespace/"+shared, w.real("b"))
				w.condition("b", v1alpha1.ConditionSharedResourceWarning, "Namespace/"+shared, w.real("a"))
			}
			uid, ns := w.uidOf(deployments, shared, "b"), w.uidOf(namespaces, "", shared)
			w.delete("a")
			w.gone("a")
			if left := w.uidOf(deployments, shared, "a") != ""; left == c.cascade {
				t.Errorf("deployment a is there: %v, cascade %v", left, c.cascade)
			}
			app := w.settled("b", "")
			w.until("no warning", func() (string, bool) {
				app = w.get("b")
				return fmt.Sprint(app.Status.Conditions), len(app.Status.Conditions) == 0
			})
			if got := w.uidOf(deployments, shared, "b"); got != uid {
				t.Errorf("deployment b: %s → %s", uid, got)
			}
			if got := w.uidOf(namespaces, "", shared); got != ns {
				t.Errorf("namespace: %s → %s", ns, got)
			}
		})
	}
}

// Two applications that share an object and are deleted together take it with them.
func TestSharedObjectGoesWithTheLast(t *testing.T) {
	w := newWorld(t)
	r := w.repo("s", map[string]string{"app/a.yaml": configMap("a", "1")})
	for _, name := range []string{"x", "y"} {
		w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, cascading)
		w.until(name+" looked at", func() (string, bool) { return "", w.get(name).Status.Sync.Status != "" })
	}
	w.condition("x", v1alpha1.ConditionSharedResourceWarning, w.real("y"))
	w.delete("x")
	w.gone("x")
	w.settled("y", "")
	if _, there := w.configMap("a"); !there {
		t.Fatal("a went with x, and y declares it")
	}
	w.until("y marks it", func() (string, bool) {
		id := w.live("v1", "configmaps", "a").GetAnnotations()[engine.TrackingAnnotation]
		return id, strings.HasPrefix(id, w.real("y")+":")
	})
	w.delete("y")
	w.gone("y")
	if _, there := w.configMap("a"); there {
		t.Error("a is still there")
	}
}

// What another application could declare is not deleted while that one has no valid rendering. It goes on when that one
// renders again, or when a person confirms it; applications that could not declare it hold nothing up.
func TestDeletionWaitsForApplicationsWithoutRendering(t *testing.T) {
	w := newWorld(t)
	r := w.repo("s", map[string]string{"a/a.yaml": configMap("a", "1"), "a/b.yaml": configMap("b", "1"), "a/c.yaml": configMap("c", "1"), "bad/x.yaml": notYAML})
	w.app("a", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "a"}, cascading)
	w.settled("a", "")
	project := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.AppProjectKind,
		"metadata": map[string]any{"name": "apart", "namespace": w.control},
		"spec":     map[string]any{"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": w.control}}},
	}}
	if _, err := w.client.Resource(v1alpha1.AppProjects()).Namespace(w.control).Create(t.Context(), project, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Of another project, which permits another namespace only.
	w.app("apart", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "bad"}, func(a *v1alpha1.Application) {
		a.Spec.Project, a.Spec.Destination.Namespace = "apart", w.control
	})
	w.condition("apart", v1alpha1.ConditionComparisonError, "x.yaml")
	sha := w.commit(r, map[string]string{"a/a.yaml": gitserver.Deleted})
	w.settled("a", sha)
	w.until("a pruned", func() (string, bool) { _, there := w.configMap("a"); return operation(w.get("a")), !there })

	w.app("bad", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "bad"})
	w.condition("bad", v1alpha1.ConditionComparisonError, "x.yaml")
	w.commit(r, map[string]string{"a/b.yaml": gitserver.Deleted})
	w.until("the prune waits", func() (string, bool) {
		text := operation(w.get("a"))
		return text, strings.Contains(text, "waits for application "+w.real("bad")) && strings.Contains(text, "ConfigMap/"+w.dest+"/b")
	})
	if _, there := w.configMap("b"); !there {
		t.Error("b was pruned while application bad could declare it")
	}
	w.commit(r, map[string]string{"bad/x.yaml": gitserver.Deleted, "bad/z.yaml": configMap("z", "1")})
	w.settled("bad", "")
	w.until("b pruned", func() (string, bool) { _, there := w.configMap("b"); return operation(w.get("a")), !there })

	w.commit(r, map[string]string{"bad/x.yaml": notYAML})
	w.condition("bad", v1alpha1.ConditionComparisonError, "x.yaml")
	w.delete("a")
	t.Log(w.condition("a", v1alpha1.ConditionDeletionError, "waits for application "+w.real("bad"), engine.ApprovedAnnotation, engine.OrphanAnnotation))
	if _, there := w.configMap("c"); !there {
		t.Error("c was deleted while application bad could declare it")
	}
	w.patchApp("a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, engine.ApprovedAnnotation, time.Now().UTC().Format(time.RFC3339)))
	w.gone("a")
	if _, there := w.configMap("c"); there {
		t.Error("c is still there")
	}
}

// C027 over a restart: what another application declares survives although that application can not be rendered any more.
func TestC027SharedWithABrokenApplication(t *testing.T) {
	w := newWorld(t)
	one := w.repo("one", map[string]string{"app/s.yaml": configMap("s", "1")})
	two := w.repo("two", map[string]string{"app/s.yaml": configMap("s", "1")})
	w.app("one", v1alpha1.ApplicationSource{RepoURL: one.URL(), Path: "app"}, cascading)
	w.settled("one", "")
	w.app("two", v1alpha1.ApplicationSource{RepoURL: two.URL(), Path: "app"})
	w.condition("two", v1alpha1.ConditionSharedResourceWarning, w.real("one"))
	w.stop()
	w.data = t.TempDir()
	w.commit(two, map[string]string{"app/bad.yaml": notYAML})
	deletes := w.deletions("v1", "configmaps")
	w.delete("one")
	w.start()
	t.Log(w.condition("one", v1alpha1.ConditionDeletionError, "waits for application "+w.real("two")))
	w.commit(two, map[string]string{"app/bad.yaml": gitserver.Deleted})
	w.gone("one")
	w.settled("two", "")
	if d := deletes(); len(d) != 0 {
		t.Errorf("deleted: %v", d)
	}
}

// Who holds an object keeps it over a restart, whichever application is looked at first; a paused one holds up nobody
// else's objects.
func TestPausedApplicationKeepsWhatItDeclared(t *testing.T) {
	w := newWorld(t)
	r := w.repo("p", map[string]string{"one/s.yaml": configMap("s", "1"), "one/t.yaml": configMap("t", "1"), "two/s.yaml": configMap("s", "1")})
	w.app("two", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "two"})
	w.settled("two", "")
	w.app("one", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "one"}, cascading)
	w.condition("one", v1alpha1.ConditionSharedResourceWarning, w.real("two"))
	w.patchApp("two", `{"metadata":{"annotations":{"`+engine.SkipReconcileAnnotation+`":"true"}}}`)
	w.stop()
	w.start()
	w.until("looked at", func() (string, bool) { return "", w.engine.Settled() == nil })
	if id := w.live("v1", "configmaps", "s").GetAnnotations()[engine.TrackingAnnotation]; !strings.HasPrefix(id, w.real("two")+":") {
		t.Errorf("s belongs to %s", id)
	}
	w.delete("one")
	w.gone("one")
	if left := w.names("v1", "configmaps"); !slices.Equal(left, []string{"s"}) {
		t.Errorf("left: %v", left)
	}
}
