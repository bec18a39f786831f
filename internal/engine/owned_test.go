package engine_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// create makes a core object in the namespace of the control plane.
func (w *world) create(resource string, fields map[string]any) {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion("v1")
	client := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(w.control)
	if _, err := client.Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// The Secret of a project opens a repository behind a private authority for the applications of this project, and shows
// others neither its files nor its branches, whoever asks first. The authority is taken up without a restart.
func TestCredentialsOfAProject(t *testing.T) {
	w := newWorld(t)
	private, err := gitserver.Start(gitserver.Options{TLS: true, Username: "robot", Password: "right-CANARY"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = private.Close() })
	r, err := private.Create("p", map[string]string{"app/a.yaml": configMap("a", "1")})
	if err != nil {
		t.Fatal(err)
	}
	w.project("team", nil)
	w.create("secrets", map[string]any{
		"kind":       "Secret",
		"metadata":   map[string]any{"name": "creds", "labels": map[string]any{"argocd.argoproj.io/secret-type": "repository"}},
		"stringData": map[string]any{"url": r.URL(), "username": "robot", "password": "right-CANARY", "project": "team"},
	})
	in := func(project string) func(*v1alpha1.Application) {
		return func(a *v1alpha1.Application) { a.Spec.Project = project }
	}
	source := v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}
	w.app("own", source, in("team"))
	w.condition("own", v1alpha1.ConditionComparisonError, "not trusted", "authority")
	w.create("configmaps", map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "argocd-tls-certs-cm"}, "data": map[string]any{"127.0.0.1": private.CA()},
	})
	w.settled("own", "")
	w.app("foreign", source, in("default"))
	w.condition("foreign", v1alpha1.ConditionComparisonError, r.URL(), "needs credentials")
	sha, err := r.Commit(map[string]string{"app/a.yaml": configMap("a", "2")}, "2")
	if err != nil {
		t.Fatal(err)
	}
	w.settled("own", sha)
	if app := w.get("foreign"); app.Status.Sync.Revision != "" {
		t.Errorf("an application of another project was shown %s", app.Status.Sync.Revision)
	}
}
