package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// foreign is a namespace that the project of these tests does not permit.
const foreign = "kube-system"

// teams makes a project that permits the destination namespace of the test, and names that begin with it, on this cluster
// alone; no kind that belongs to the whole cluster.
func (w *world) teams() {
	w.t.Helper()
	p := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.AppProjectKind, "metadata": map[string]any{"name": "p"},
		"spec": map[string]any{
			"sourceRepos":  []any{"*"},
			"destinations": []any{map[string]any{"server": "https://kubernetes.default.svc", "namespace": w.dest + "*"}},
		},
	}}
	if _, err := w.projects().Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// ofProject puts an application into that project.
func ofProject(a *v1alpha1.Application) { a.Spec.Project = "p" }

// refusedBy waits until the application names the object and the rule, and checks that nothing of it was applied.
func (w *world) refusedBy(name string, parts ...string) {
	w.t.Helper()
	said := ""
	w.until(name+" is refused", func() (string, bool) {
		app := w.get(name)
		said = fmt.Sprint(app.Status.Conditions) + operation(app)
		for _, p := range append(parts, "not permitted by the project p") {
			if !strings.Contains(said, p) {
				return "no " + p + " in " + said, false
			}
		}
		return "", true
	})
	w.t.Log(said)
	if _, there := w.configMap(name); there {
		w.t.Errorf("%s: what is permitted was applied beside what is not", name)
	}
	app := w.get(name)
	if app.Status.Sync.Status == v1alpha1.SyncSynced || len(app.Status.History) > 0 {
		w.t.Errorf("%s: %s, %d deployments", name, app.Status.Sync.Status, len(app.Status.History))
	}
}

// C047: what a project does not permit is refused on every path before anything is applied, with the rule: by the namespace
// of the application or of a manifest, inside a List, as a hook, as an application of another project, as a kind of the whole
// cluster. However the cluster is named, the rules are the same.
func TestC047LimitsOfAProject(t *testing.T) {
	w := newWorld(t)
	w.teams()
	leak := "leak-" + w.dest
	there := func(text string) string { return in(foreign, text) }
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + leak + "}\n"
	child := fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: %s, namespace: %s}\n"+
		"spec: {project: default, source: {repoURL: x, path: y}, destination: {name: in-cluster, namespace: kube-system}}\n", leak, w.control)
	for name, c := range map[string]struct {
		text  string
		parts []string
	}{
		"two":   {there(configMap(leak, "1")), []string{"ConfigMap/" + leak, foreign, "destinations"}},
		"five":  {role, []string{"ClusterRole/" + leak, "clusterResourceWhitelist"}},
		"six":   {"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(there(configMap(leak, "1"))), "\n", "\n  ") + "\n", []string{"ConfigMap/" + leak, foreign}},
		"seven": {there(job(leak, "argocd.argoproj.io/hook: PreSync", "")), []string{"Job/" + leak, foreign}},
		"eight": {child, []string{"Application/" + leak, w.control}},
	} {
		r := w.repo(name, map[string]string{"app/a.yaml": configMap(name, "1"), "app/b.yaml": c.text})
		w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ofProject)
		w.refusedBy(name, c.parts...)
	}
	w.limitsByDestination()
	for gvr, ns := range map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "configmaps"}: foreign, {Group: "batch", Version: "v1", Resource: "jobs"}: foreign,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}: "", v1alpha1.Applications(): w.control,
	} {
		if w.uidOf(gvr, ns, leak) != "" {
			t.Errorf("%s %s was made", gvr.Resource, leak)
		}
	}
}

// limitsByDestination tries the spellings of one cluster, with a namespace that is permitted and with one that is not; a
// record of the cluster that belongs to the project changes nothing.
func (w *world) limitsByDestination() {
	w.t.Helper()
	record := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": "cluster", "labels": map[string]any{"argocd.argoproj.io/secret-type": "cluster"}},
		"stringData": map[string]any{"server": "https://kubernetes.default.svc", "name": "in-cluster", "project": "p", "config": "{}"},
	}}
	if _, err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(w.control).Create(w.t.Context(), record, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	for name, to := range map[string]v1alpha1.ApplicationDestination{
		"url": {Server: "https://kubernetes.default.svc"}, "slash": {Server: "https://kubernetes.default.svc/"},
		"upper": {Server: "https://KUBERNETES.Default.SVC"}, "byname": {Name: "in-cluster"},
	} {
		fine, bad := name+"-fine", name+"-bad"
		r := w.repo(name, map[string]string{"fine/a.yaml": configMap(fine, "1"), "bad/a.yaml": configMap(bad, "1")})
		w.app(fine, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "fine"}, ofProject, func(a *v1alpha1.Application) {
			to.Namespace = w.dest
			a.Spec.Destination = to
		})
		w.settled(fine, "")
		w.app(bad, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "bad"}, ofProject, func(a *v1alpha1.Application) {
			to.Namespace = foreign
			a.Spec.Destination = to
		})
		w.refusedBy(bad, "spec.destination", foreign, "destinations")
		if w.uidOf(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, foreign, bad) != "" {
			w.t.Errorf("%s was made in %s", bad, foreign)
		}
	}
}
