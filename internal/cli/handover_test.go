package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/handover"
)

// app reads an application.
func (c *cluster) app(t *testing.T, name string) *v1alpha1.Application {
	t.Helper()
	app, err := c.client.Get(t.Context(), client.Ref{Namespace: c.namespace, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// argo writes an application's status as Argo CD's controller does.
func (c *cluster) argo(t *testing.T, name, status string) {
	t.Helper()
	_, err := c.apps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{FieldManager: "argocd-application-controller"})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAdopt(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", nil)
	c.argo(t, "shop", `{"reconciledAt":"2026-05-04T12:00:00Z"}`)

	c.lockstep("adopt", "shop", "--dry-run").want(t, cli.CodeOK, c.namespace+"/shop: would be adopted")
	if app := c.app(t, "shop"); len(app.Labels)+len(app.Annotations) > 0 {
		t.Errorf("a dry run wrote %v %v", app.Labels, app.Annotations)
	}
	c.lockstep("adopt", "shop", "--quiet", "0s").want(t, cli.CodeOK, c.namespace+"/shop: adopted")
	app := c.app(t, "shop")
	at, err := time.Parse(time.RFC3339, app.Annotations[handover.AdoptedAnnotation])
	if !handover.Adopted(app) || handover.Paused(app) || err != nil || time.Since(at) > time.Hour {
		t.Errorf("labels %v, annotations %v", app.Labels, app.Annotations)
	}
	c.lockstep("adopt", "shop").want(t, cli.CodeOK, "is Lockstep's already")
	if again := c.app(t, "shop"); again.ResourceVersion != app.ResourceVersion {
		t.Error("an application that is adopted was written")
	}
	c.lockstep("adopt", "nowhere").want(t, cli.CodeNotFound, c.namespace+"/nowhere: not found")
	c.lockstep("adopt").want(t, cli.CodeUsage, "no application is named")
}

// Argo CD ends the sync that it has begun; only then it is sent away. It has to be quiet after that.
func TestAdoptWaits(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", nil)
	c.carry(t, "shop", v1alpha1.OperationState{Phase: v1alpha1.OperationRunning})
	c.lockstep("adopt", "shop", "--timeout", "1s").want(t, cli.CodeTimeout, "waited in vain until the sync that is under way has ended")
	if app := c.app(t, "shop"); app.Annotations[handover.SkipAnnotation] != "" {
		t.Error("Argo CD was sent away in the middle of a sync")
	}
	r := c.start(t, "adopt", "shop", "--quiet", "2s")
	c.carry(t, "shop", v1alpha1.OperationState{Phase: v1alpha1.OperationSucceeded})
	until(t, "Argo CD to be sent away", func() bool { return c.app(t, "shop").Annotations[handover.AdoptedAnnotation] == handover.Pending })
	c.argo(t, "shop", `{"reconciledAt":"2026-05-04T12:00:01Z"}`) // what it had begun before
	if handover.Adopted(c.app(t, "shop")) {
		t.Error("adopted while Argo CD still writes")
	}
	r.wait().want(t, cli.CodeOK, "adopted")
}

// An ApplicationSet takes off whatever its template does not have, unless it is told to leave it.
func TestAdoptFromApplicationSet(t *testing.T) {
	c := newCluster(t)
	dyn := c.live(t, "shop")
	applicationSets(t, dyn)
	sets := dyn.Resource(schema.GroupVersionResource{Group: v1alpha1.Group, Version: "v1alpha1", Resource: "applicationsets"}).Namespace(c.namespace)
	set, err := sets.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": map[string]any{"name": "all"},
		"spec": map[string]any{"generators": []any{}, "template": map[string]any{"metadata": map[string]any{}, "spec": map[string]any{
			"project": "default", "destination": map[string]any{},
		}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.create(t, "shop", func(app *v1alpha1.Application) {
		app.OwnerReferences = []metav1.OwnerReference{{APIVersion: "argoproj.io/v1alpha1", Kind: "ApplicationSet", Name: "all", UID: set.GetUID()}}
	})
	c.lockstep("adopt", "shop").want(t, cli.CodeRefused, "ApplicationSet all would take the marks", handover.ManagerLabel, handover.SkipAnnotation)
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"preservedFields": map[string]any{
		"labels": []string{handover.ManagerLabel}, "annotations": handover.Marks(),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sets.Patch(t.Context(), "all", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.lockstep("adopt", "shop", "--quiet", "0s").want(t, cli.CodeOK, "adopted")
}

// applicationSets makes the cluster know the kind, as far as the test needs it.
func applicationSets(t *testing.T, dyn dynamic.Interface) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: applicationsets.argoproj.io}
spec:
  group: argoproj.io
  names: {kind: ApplicationSet, listKind: ApplicationSetList, plural: applicationsets, singular: applicationset}
  scope: Namespaced
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`), &definition.Object); err != nil {
		t.Fatal(err)
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := dyn.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	sets := schema.GroupVersionResource{Group: v1alpha1.Group, Version: "v1alpha1", Resource: "applicationsets"}
	until(t, "ApplicationSets to be served", func() bool {
		_, err := dyn.Resource(sets).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// Where no Lockstep runs there is nobody to wait for. What was cut off goes on, and no object of another application is
// touched.
func TestRelease(t *testing.T) {
	c := newCluster(t)
	dyn := c.live(t, "shop", sameMap, changedMap)
	c.live(t, "other", oldMap)
	c.create(t, "shop", func(app *v1alpha1.Application) {
		app.Labels = map[string]string{handover.ManagerLabel: handover.Lockstep}
		app.Annotations = map[string]string{handover.SkipAnnotation: "true", handover.AdoptedAnnotation: handover.Never}
		app.Spec.Destination.Namespace = c.namespace
		for _, name := range []string{"same", "changed", "old", "gone"} {
			app.Status.Resources = append(app.Status.Resources, v1alpha1.ResourceStatus{Version: "v1", Kind: "ConfigMap", Namespace: c.namespace, Name: name})
		}
	})
	maps := dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(c.namespace)
	owner := func(name string) string {
		t.Helper()
		u, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var owners []string
		for _, f := range u.GetManagedFields() {
			if f.Operation == metav1.ManagedFieldsOperationApply {
				owners = append(owners, f.Manager)
			}
		}
		return strings.Join(owners, " ")
	}
	c.lockstep("release", "shop", "--dry-run").want(t, cli.CodeOK, "would be released; objects to give back: 2")
	if owner("same") != "lockstep" || !handover.Adopted(c.app(t, "shop")) {
		t.Error("a dry run wrote")
	}
	c.lockstep("release", "shop").want(t, cli.CodeOK, c.namespace+"/shop: released; objects given back: 2")
	if owner("same") != "argocd-controller" || owner("changed") != "argocd-controller" || owner("old") != "lockstep" {
		t.Errorf("owners: %s, %s, %s", owner("same"), owner("changed"), owner("old"))
	}
	u, err := maps.Get(t.Context(), "same", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"shop:/ConfigMap:` +
		c.namespace + `/same"},"name":"same","namespace":"` + c.namespace + `"}}` + "\n"
	if got := u.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; got != want {
		t.Errorf("noted for Argo CD: %s", got)
	}
	app := c.app(t, "shop")
	if !handover.Released(app) || app.Annotations[handover.SkipAnnotation] != "" {
		t.Errorf("labels %v, annotations %v", app.Labels, app.Annotations)
	}
	c.lockstep("release", "shop").want(t, cli.CodeOK, "is Argo CD's already")

	// Cut off after Lockstep had let go.
	c.patch(t, "shop", map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		handover.SkipAnnotation: "true", handover.ReleasingAnnotation: handover.LetGo,
	}}})
	c.lockstep("release", "shop").want(t, cli.CodeOK, "released; objects given back: 0")
	if app := c.app(t, "shop"); !handover.Released(app) || app.Annotations[handover.SkipAnnotation] != "" {
		t.Errorf("labels %v, annotations %v", app.Labels, app.Annotations)
	}
}
