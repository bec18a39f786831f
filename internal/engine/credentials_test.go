package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// Credentials of a Secret open the repository; wrong ones give one sentence without them, right ones work without a
// restart.
func TestCredentialsFromSecrets(t *testing.T) {
	w := newWorld(t)
	private, err := gitserver.Start(gitserver.Options{Username: "robot", Password: "right-CANARY"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = private.Close() })
	r, err := private.Create("p", map[string]string{"app/a.yaml": configMap("a", "1")})
	if err != nil {
		t.Fatal(err)
	}
	secrets := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(w.control)
	secret := func(password string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata":   map[string]any{"name": "creds", "labels": map[string]any{"argocd.argoproj.io/secret-type": "repo-creds"}},
			"stringData": map[string]any{"url": private.Base(), "username": "robot", "password": password},
		}}
	}
	if _, err := secrets.Create(t.Context(), secret("wrong-CANARY"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.app("private", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	message := w.condition("private", v1alpha1.ConditionComparisonError, r.URL())
	t.Log(message)
	if strings.Contains(message, "CANARY") || strings.Contains(w.log.String(), "CANARY") {
		t.Error("a password is shown")
	}
	if _, err := secrets.Update(t.Context(), secret("right-CANARY"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.settled("private", "")
}

// The API server going away stops nothing for good, deletes nothing, and drift of that time is put back.
func TestAPIServerAway(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of its own")
	}
	w := newWorldOn(t, ownCluster(t))
	r := w.repo("s", map[string]string{"app/a.yaml": configMap("a", "1"), "app/b.yaml": configMap("b", "1")})
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("s", "")
	before, err := w.resource("v1", "configmaps").Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.cluster.Fault(t, "kill", "kube-apiserver")
	sha := w.commit(r, map[string]string{"app/a.yaml": configMap("a", "2")})
	// Long enough for the engine to see the commit and fail to apply it.
	w.until("the engine noticed", func() (string, bool) {
		return "log says nothing", strings.Contains(w.log.String(), "connection refused")
	})
	w.cluster.Fault(t, "restart", "kube-apiserver")
	w.until("API server back", func() (string, bool) {
		_, err := w.apps().List(t.Context(), metav1.ListOptions{})
		return fmt.Sprint(err), err == nil
	})
	w.settled("s", sha)
	after, err := w.resource("v1", "configmaps").Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("an object that did not change was written")
	}
}
