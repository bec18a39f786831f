package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/handover"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// argoWrites writes an Application's status as Argo CD's controller does.
func (w *world) argoWrites(name, status string) {
	w.t.Helper()
	_, err := w.apps().Patch(w.t.Context(), w.real(name), types.MergePatchType, []byte(`{"status":`+status+`}`),
		metav1.PatchOptions{FieldManager: "argocd-application-controller"})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) workloads() (schema.GroupVersionResource, string) {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, w.control
}

// argoRuns makes what an installation of Argo CD has.
func (w *world) argoRuns() {
	w.t.Helper()
	gvr, namespace := w.workloads()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"name": "argocd-application-controller", "labels": map[string]any{
			"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller",
		}},
		"spec": map[string]any{
			"serviceName": "argocd", "selector": map[string]any{"matchLabels": map[string]any{"a": "c"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"a": "c"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "quay.example/argocd:v3"}}},
			},
		},
	}}
	if _, err := w.client.Resource(gvr).Namespace(namespace).Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) argoScaled(replicas int) {
	w.t.Helper()
	gvr, namespace := w.workloads()
	_, err := w.client.Resource(gvr).Namespace(namespace).Patch(w.t.Context(), "argocd-application-controller", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// leftAlone waits for the Event by which an application is left alone, and sees that Lockstep has not written it.
func (w *world) leftAlone(name, reason string) {
	w.t.Helper()
	events := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(w.control)
	w.until(name+" left alone", func() (string, bool) {
		list, err := events.List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		said := []string{}
		for _, ev := range list.Items {
			object, _, _ := unstructured.NestedString(ev.Object, "involvedObject", "name")
			message, _, _ := unstructured.NestedString(ev.Object, "message")
			if object == w.real(name) && strings.Contains(message, reason) {
				return "", true
			}
			said = append(said, message)
		}
		return strings.Join(said, "; "), false
	})
	for _, m := range w.managers(name) {
		if m == "lockstep" {
			w.t.Errorf("%s is left alone, but was written", name)
		}
	}
}

func (w *world) managers(name string) []string {
	w.t.Helper()
	u, err := w.apps().Get(w.t.Context(), w.real(name), metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, f := range u.GetManagedFields() {
		out = append(out, f.Manager)
	}
	return out
}

// Applications in the namespace of an Argo CD that runs are refused with a sentence, until that Argo CD is gone or they are
// handed over.
func TestBesideRunningArgoCD(t *testing.T) {
	w := newWorld(t)
	w.argoRuns()
	repo := w.repo("beside", map[string]string{"app/cm.yaml": configMap("beside", "a"), "other/cm.yaml": configMap("handed", "a")})
	source := func(path string) v1alpha1.ApplicationSource {
		return v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: path, TargetRevision: "main"}
	}
	w.app("beside", source("app"))
	w.leftAlone("beside", "Argo CD manages the application, too (StatefulSet "+w.control+"/argocd-application-controller runs); run `lockstep adopt "+w.real("beside")+"`")
	w.app("handed", source("other"), handed)
	w.settled("handed", "")
	if _, there := w.configMap("beside"); there {
		t.Error("an application that Argo CD keeps was synced")
	}
	w.argoScaled(0)
	w.settled("beside", "")
}

// handed marks an application as adopted.
func handed(a *v1alpha1.Application) {
	a.Labels = map[string]string{handover.ManagerLabel: handover.Lockstep}
	a.Annotations = map[string]string{handover.SkipAnnotation: "true", handover.AdoptedAnnotation: handover.Never}
}

// What Argo CD wrote lately it keeps, wherever it runs; so does it other applications of the namespace.
func TestBesideArgoCDElsewhere(t *testing.T) {
	w := newWorld(t)
	w.stop()
	repo := w.repo("elsewhere", map[string]string{"app/cm.yaml": configMap("elsewhere", "a")})
	source := v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: "app", TargetRevision: "main"}
	w.app("written", source)
	w.argoWrites("written", `{"sync":{"status":"OutOfSync","comparedTo":{"destination":{},"source":{"repoURL":""}}}}`)
	w.start()
	w.leftAlone("written", "it wrote its status at")
	w.app("fresh", source)
	w.leftAlone("fresh", "it wrote application "+w.real("written")+" at")
}

// Argo CD begins to write an application that Lockstep keeps: Lockstep stops, and says so.
func TestArgoCDComes(t *testing.T) {
	w := newWorld(t)
	repo := w.repo("comes", map[string]string{"app/cm.yaml": configMap("comes", "a")})
	w.app("comes", v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: "app", TargetRevision: "main"})
	w.settled("comes", "")
	w.argoWrites("comes", `{"reconciledAt":"2026-01-01T00:00:00Z"}`)
	w.until("Lockstep to stop", func() (string, bool) {
		return "no Warning", strings.Contains(w.log.String(), "application left alone")
	})
	w.commit(repo, map[string]string{"app/cm.yaml": configMap("comes", "b")})
	w.idles(2 * time.Second)
	if data, _ := w.configMap("comes"); data["k"] != "a" {
		t.Errorf("an application that Argo CD writes was synced: %v", data)
	}
}

// idles lets Lockstep do for a while what it should not do.
func (w *world) idles(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.t.Context().Done():
	}
}

// Applications that are not selected are not touched, and what they declare is not pruned, nor taken from them.
func TestSelectedApplications(t *testing.T) {
	w := newWorld(t)
	w.stop()
	selector, err := labels.Parse(handover.ManagerLabel + "=" + handover.Lockstep)
	if err != nil {
		t.Fatal(err)
	}
	w.tune = func(o *engine.Options) { o.Applications = selector }
	w.start()
	repo := w.repo("selected", map[string]string{
		"mine/kept.yaml": configMap("kept", "mine"), "mine/moved.yaml": configMap("moved", "mine"), "mine/gone.yaml": configMap("gone", "mine"),
		"theirs/moved.yaml": configMap("moved", "theirs"),
	})
	source := func(path string) v1alpha1.ApplicationSource {
		return v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: path, TargetRevision: "main"}
	}
	w.app("mine", source("mine"), handed)
	w.settled("mine", "")
	w.app("theirs", source("theirs"))
	// Argo CD keeps the other one and says what it declares.
	w.argoWrites("theirs", `{"resources":[{"version":"v1","kind":"ConfigMap","namespace":"`+w.dest+`","name":"moved","status":"OutOfSync"}]}`)
	w.until("the other application to be known", func() (string, bool) { return "", w.engine.Settled() == nil })
	w.commit(repo, map[string]string{"mine/moved.yaml": gitserver.Deleted, "mine/gone.yaml": gitserver.Deleted})
	w.until("gone to be pruned", func() (string, bool) {
		_, there := w.configMap("gone")
		return "it is there", !there
	})
	if data, _ := w.configMap("moved"); data["k"] != "mine" {
		t.Errorf("what an application declares that is not ours: %v", data)
	}
	for _, m := range w.managers("theirs") {
		if m == "lockstep" {
			t.Error("an application that is not selected was written")
		}
	}
	counted := prometheus.NewRegistry()
	counted.MustRegister(w.engine.Collector())
	if n, err := testutil.GatherAndCount(counted, "argocd_app_info"); err != nil || n != 1 {
		t.Errorf("applications counted: %d, %v", n, err)
	}
}
