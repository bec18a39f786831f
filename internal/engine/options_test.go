package engine_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// operated asks for an operation and waits for its end. It is known by a note that it carries.
func (w *world) operated(name, sync string, phase v1alpha1.OperationPhase) *v1alpha1.OperationState {
	w.t.Helper()
	note := rand.Text()
	w.patchApp(name, `{"operation":{"info":[{"name":"test","value":"`+note+`"}],"sync":`+sync+`}}`)
	var now *v1alpha1.OperationState
	w.until("operation "+sync, func() (string, bool) {
		app := w.get(name)
		now = app.Status.OperationState
		ours := now != nil && slices.ContainsFunc(now.Operation.Info, func(i *v1alpha1.Info) bool { return i.Value == note })
		return operation(app), ours && now.Phase.Completed()
	})
	if now.Phase != phase {
		w.t.Fatalf("operation %s: %s: %s", sync, now.Phase, now.Message)
	}
	return now
}

// outcomeOf is what the operation says of an object, by kind and name.
func outcomeOf(op *v1alpha1.OperationState, object string) string {
	for _, r := range op.SyncResult.Resources {
		if r.Kind+"/"+r.Name == object {
			return string(r.Status) + ": " + r.Message
		}
	}
	return ""
}

func byHand(a *v1alpha1.Application, options ...string) {
	a.Spec.SyncPolicy = &v1alpha1.SyncPolicy{SyncOptions: options}
}

// The options of an operation stand in the place of the application's; without any, the application's count.
func TestOptionsOfAnOperation(t *testing.T) {
	w := newWorld(t)
	r := w.repo("o", map[string]string{"app/a.yaml": configMap("a", "1"), "app/b.yaml": configMap("b", "1")})
	w.app("o", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) { byHand(a, "Prune=false") })
	w.operated("o", `{}`, v1alpha1.OperationSucceeded)
	w.commit(r, map[string]string{"app/b.yaml": ""})
	op := w.operated("o", `{"prune":true}`, v1alpha1.OperationSucceeded)
	if _, there := w.configMap("b"); !there {
		t.Errorf("pruned against the application's Prune=false: %s", outcomeOf(op, "ConfigMap/b"))
	}
	w.operated("o", `{"prune":true,"syncOptions":["PruneLast=true","Prunelast=true"]}`, v1alpha1.OperationSucceeded)
	w.condition("o", v1alpha1.ConditionUnsupportedWarning, "operation.sync.syncOptions[1]", `"Prunelast=true"`)
	if _, there := w.configMap("b"); there {
		t.Error("not pruned although the operation's options do not say Prune=false")
	}
}

// Options that can not be followed are told by their place: contradictions, a force for what others live in, metadata for a
// namespace that nobody makes.
func TestOptionsWithoutEffect(t *testing.T) {
	w := newWorld(t)
	other := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + w.dest + "-more}\n"
	r := w.repo("n", map[string]string{"app/a.yaml": optioned("Replace=true,Replace=false", configMap("a", "1")), "app/ns.yaml": optioned("Force=true", other)})
	w.app("n", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.ManagedNamespaceMetadata = &v1alpha1.ManagedNamespaceMetadata{Labels: map[string]string{"a": "b"}}
	})
	w.settled("n", "")
	w.condition("n", v1alpha1.ConditionUnsupportedWarning, "ConfigMap/"+w.dest+"/a", "Replace is said to be false and true")
	w.condition("n", v1alpha1.ConditionUnsupportedWarning, "Namespace/"+w.dest+"-more", `"Force=true" has no effect`)
	w.condition("n", v1alpha1.ConditionUnsupportedWarning, "spec.syncPolicy.managedNamespaceMetadata", "CreateNamespace=true")
}

// FailOnSharedResource=true: nothing of the sync is applied when another application has one of the objects.
func TestFailOnSharedResource(t *testing.T) {
	w := newWorld(t)
	shared := w.repo("first", map[string]string{"app/s.yaml": configMap("shared", "first")})
	w.app("first", v1alpha1.ApplicationSource{RepoURL: shared.URL(), Path: "app"})
	w.settled("first", "")
	r := w.repo("second", map[string]string{"app/a.yaml": configMap("alone", "1"), "app/s.yaml": configMap("shared", "second")})
	w.app("second", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	op := w.operated("second", `{"syncOptions":["FailOnSharedResource=true"]}`, v1alpha1.OperationFailed)
	for _, part := range []string{"ConfigMap/shared", w.real("first"), "nothing was applied"} {
		if !strings.Contains(op.Message, part) {
			t.Errorf("%q misses %q", op.Message, part)
		}
	}
	if _, there := w.configMap("alone"); there {
		t.Error("an object of the sync was applied")
	}
	w.operated("second", `{}`, v1alpha1.OperationSucceeded)
	if data, _ := w.configMap("shared"); data["k"] != "first" {
		t.Errorf("the shared object is %v", data)
	}
	if _, there := w.configMap("alone"); !there {
		t.Error("without the option the rest is not applied")
	}
}

// The strategy apply runs no hooks, the default does; in a dry run neither hooks nor namespaces come into being.
func TestStrategyApplyAndDryRun(t *testing.T) {
	w := newWorld(t)
	hook := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {argocd.argoproj.io/hook: PreSync}}\n"
	r := w.repo("s", map[string]string{"app/a.yaml": configMap("a", "1"), "app/h.yaml": hook})
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.operated("s", `{"syncStrategy":{"apply":{}}}`, v1alpha1.OperationSucceeded)
	if _, there := w.configMap("hook"); there {
		t.Error("the hook ran")
	}
	w.operated("s", `{"syncStrategy":{"hook":{}}}`, v1alpha1.OperationSucceeded)
	if _, there := w.configMap("hook"); !there {
		t.Error("the hook did not run")
	}
}

// A dry run of an application whose namespace and kinds come with it goes through, and makes nothing.
func TestDryRunOfAFirstSync(t *testing.T) {
	w := newWorld(t)
	ns, group := w.dest+"-dry", w.dest+".example.com"
	r := w.repo("d", map[string]string{
		"app/a.yaml": configMap("a", "1"),
		"app/c.yaml": definitionOf(t, gadgets(group)) + "\n---\napiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {name: g}\n",
	})
	w.app("d", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		byHand(a, "CreateNamespace=true")
		a.Spec.Destination.Namespace = ns
	})
	op := w.operated("d", `{"dryRun":true}`, v1alpha1.OperationSucceeded)
	for _, object := range []string{"ConfigMap/a", "Gadget/g", "CustomResourceDefinition/gadgets." + group} {
		if got := outcomeOf(op, object); !strings.HasPrefix(got, "Synced: would be created") {
			t.Errorf("%s: %q", object, got)
		}
	}
	if _, err := w.namespaces().Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the dry run made the namespace: %v", err)
	}
	if status := w.get("d").Status.Sync.Status; status != v1alpha1.SyncOutOfSync {
		t.Errorf("then it is %s", status)
	}
}

// A change of the namespace's metadata makes the application OutOfSync, and the next sync brings it; labels of others stay.
func TestManagedNamespaceMetadata(t *testing.T) {
	w := newWorld(t)
	ns := w.dest + "-ns"
	r := w.repo("ns", map[string]string{"app/a.yaml": configMap("a", "1")})
	w.app("ns", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Spec.Destination.Namespace = ns
		a.Spec.SyncPolicy.SyncOptions = v1alpha1.SyncOptions{"CreateNamespace=true"}
		a.Spec.SyncPolicy.ManagedNamespaceMetadata = &v1alpha1.ManagedNamespaceMetadata{Labels: map[string]string{"team": "a", "old": "x"}}
	})
	t.Cleanup(func() { _ = w.namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{}) })
	w.settled("ns", "")
	labels := func() string {
		u, err := w.namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := u.GetLabels()
		return fmt.Sprintf("team=%s old=%s foreign=%s", l["team"], l["old"], l["foreign"])
	}
	if got := labels(); got != "team=a old=x foreign=" {
		t.Fatalf("labels %s", got)
	}
	if _, err := w.namespaces().Patch(t.Context(), ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"foreign":"f"}}}`), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
		t.Fatal(err)
	}
	w.patchApp("ns", `{"spec":{"syncPolicy":{"managedNamespaceMetadata":{"labels":{"team":"b","old":null}}}}}`)
	w.until("automated sync", func() (string, bool) { got := labels(); return got, got == "team=b old= foreign=f" })
	w.until("the second deployment", func() (string, bool) {
		n := len(w.get("ns").Status.History)
		return fmt.Sprint(n), n == 2
	})
	w.patchApp("ns", `{"spec":{"syncPolicy":{"automated":null,"managedNamespaceMetadata":{"labels":{"team":"c"}}}}}`)
	w.until("OutOfSync", func() (string, bool) {
		s := w.get("ns").Status.Sync.Status
		return string(s), s == v1alpha1.SyncOutOfSync
	})
	w.operated("ns", `{"dryRun":true}`, v1alpha1.OperationSucceeded)
	if s := w.get("ns").Status.Sync.Status; s != v1alpha1.SyncOutOfSync {
		t.Errorf("after a dry run it is %s", s)
	}
	w.operated("ns", `{}`, v1alpha1.OperationSucceeded)
	w.settled("ns", "")
	if got := labels(); got != "team=c old= foreign=f" {
		t.Errorf("labels %s", got)
	}
	if n := len(w.get("ns").Status.History); n != 3 {
		t.Errorf("%d deployments", n)
	}
	w.patchApp("ns", `{"spec":{"syncPolicy":{"managedNamespaceMetadata":null}}}`)
	w.operated("ns", `{}`, v1alpha1.OperationSucceeded)
	w.settled("ns", "")
	if got := labels(); got != "team= old= foreign=f" {
		t.Errorf("labels %s", got)
	}
}

// PrunePropagationPolicy=orphan leaves what the pruned object's controller has made; PruneLast puts the prune behind the rest.
func TestPropagationAndPruneLast(t *testing.T) {
	w := newWorld(t)
	r := w.repo("p", map[string]string{
		"app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1), "app/a.yaml": configMap("a", "1"),
		"app/last.yaml": optioned("PruneLast=true", configMap("last", "1")), "app/first.yaml": configMap("first", "1"),
	})
	w.app("p", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		byHand(a, "PrunePropagationPolicy=orphan")
	})
	w.operated("p", `{}`, v1alpha1.OperationSucceeded)
	w.settled("p", "")
	w.commit(r, map[string]string{"app/web.yaml": "", "app/last.yaml": "", "app/first.yaml": "", "app/a.yaml": configMap("a", "2")})
	op := w.operated("p", `{"prune":true}`, v1alpha1.OperationSucceeded)
	var order []string
	for _, r := range op.SyncResult.Resources {
		order = append(order, r.Name)
	}
	place := func(name string) int { return strings.Index(strings.Join(order, " ")+" ", name+" ") }
	if place("first") > place("a") || place("a") > place("last") {
		t.Errorf("done in the order %v", order)
	}
	w.until("web gone", func() (string, bool) {
		_, err := w.resource("apps/v1", "deployments").Get(t.Context(), "web", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	w.until("its ReplicaSet without owner", func() (string, bool) {
		list, err := w.resource("apps/v1", "replicasets").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("replica sets: %v, %v", list, err)
		}
		return fmt.Sprint(list.Items[0].GetOwnerReferences()), len(list.Items[0].GetOwnerReferences()) == 0
	})
}

// ApplyOutOfSyncOnly=true leaves alone what is in step only because its differences are ignored.
func TestApplyOutOfSyncOnly(t *testing.T) {
	w := newWorld(t)
	r := w.repo("only", map[string]string{"app/web.yaml": labelled(oldImage, 2), "app/cm.yaml": configMap("other", "1")})
	w.app("only", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(false, replicasRule()), func(a *v1alpha1.Application) {
		byHand(a)
	})
	w.operated("only", `{}`, v1alpha1.OperationSucceeded)
	w.settled("only", "")
	w.scale("web", "kubectl", 3)
	w.commit(r, map[string]string{"app/cm.yaml": configMap("other", "2")})
	w.operated("only", `{"syncOptions":["ApplyOutOfSyncOnly=true"]}`, v1alpha1.OperationSucceeded)
	if n := replicas(w.live("apps/v1", "deployments", "web")); n != 3 {
		t.Errorf("the sync set %d replicas", n)
	}
	w.operated("only", `{}`, v1alpha1.OperationSucceeded)
	if n := replicas(w.live("apps/v1", "deployments", "web")); n != 2 {
		t.Errorf("without the option there are %d replicas", n)
	}
}

func (w *world) namespaces() dynamic.ResourceInterface {
	return w.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
}

// gadgets is a definition of the kind Gadget in a group of one test alone.
func gadgets(group string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// definitionOf is a definition as a document of a manifest.
func definitionOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
