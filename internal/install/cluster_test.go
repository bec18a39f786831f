package install_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/crds"
	"github.com/lockstep-cd/lockstep/internal/install"
)

// cluster is what the tests do to the API server.
type cluster struct{ client dynamic.Interface }

func (c cluster) definitions() dynamic.ResourceInterface {
	return c.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// all installs and lists what was done.
func (c cluster) all(t *testing.T, options install.Options) []string {
	t.Helper()
	report, err := install.All(t.Context(), c.client, options)
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	for _, change := range report.Changes {
		done = append(done, string(change.Action)+" "+change.Object)
	}
	return done
}

func changes(all ...string) []string { return all }

// definition is ours, fresh.
func (c cluster) definition(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.GetName() == name {
			return crd
		}
	}
	t.Fatalf("no definition %s", name)
	return nil
}

// define creates a definition of ours with other fields in spec.source, as another product would have.
func (c cluster) define(t *testing.T, name string, edit func(source map[string]any)) {
	t.Helper()
	crd := c.definition(t, name)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "source", "properties"}
	source, found, _ := unstructured.NestedMap(versions[0].(map[string]any), path...)
	if found {
		edit(source)
		if err := unstructured.SetNestedMap(versions[0].(map[string]any), source, path...); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	c.create(t, crd)
}

func (c cluster) create(t *testing.T, crd *unstructured.Unstructured) {
	t.Helper()
	if _, err := c.definitions().Create(t.Context(), crd, metav1.CreateOptions{FieldManager: "another"}); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) namespace(t *testing.T, name string) {
	t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	if _, err := c.client.Resource(namespaces()).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a definition and waits until it and its objects are gone.
func (c cluster) remove(t *testing.T, name string) {
	t.Helper()
	err := c.definitions().Delete(t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	eventually(t, name+" is gone", func(ctx context.Context) error {
		_, err := c.definitions().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("still there")
	})
}

// versions are the resource versions of all definitions of the group.
func (c cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	return c.versionsWhen(t, func(*unstructured.Unstructured) error { return nil })
}

// versionsWhen waits until something holds for each definition of the group.
func (c cluster) versionsWhen(t *testing.T, holds func(*unstructured.Unstructured) error) map[string]string {
	t.Helper()
	result := map[string]string{}
	eventually(t, "the definitions", func(ctx context.Context) error {
		list, err := c.definitions().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, crd := range list.Items {
			if !strings.HasSuffix(crd.GetName(), "argoproj.io") {
				continue
			}
			if err := holds(&crd); err != nil {
				return err
			}
			result[crd.GetName()] = crd.GetResourceVersion()
		}
		return nil
	})
	return result
}

func established(crd *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if entry := condition.(map[string]any); entry["type"] == "Established" && entry["status"] == "True" {
			return nil
		}
	}
	return errors.New(crd.GetName() + " is not established")
}

// eventually tries until a step works; the last error tells why it did not.
func eventually(t *testing.T, what string, step func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = step(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

func application(namespace string, source map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{"name": "web", "namespace": namespace},
		"spec": map[string]any{
			"project": "default", "source": source, "destination": map[string]any{"name": "in-cluster", "namespace": "shop"},
		},
	}}
}
