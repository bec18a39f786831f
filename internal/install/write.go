package install

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/lockstep-cd/lockstep/api/crds"
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// pollInterval is short since a server takes up a definition within a few of them.
const pollInterval = 50 * time.Millisecond

// CRDs writes the definitions of our kinds, changes by server-side apply, and waits until the server serves them. A definition that
// exists is left as it is when it accepts all that ours accepts, else extended by what is missing; it keeps every field it
// has. All are compared before the first is written: a *ConflictError means that nothing was.
func CRDs(ctx context.Context, client dynamic.Interface, options Options) (Report, error) {
	options = options.withDefaults()
	wanted, err := crds.All()
	if err != nil {
		return Report{}, err
	}
	api := client.Resource(definitions())
	for _, crd := range wanted {
		if _, _, err := compare(ctx, api, crd); err != nil {
			return Report{}, err
		}
	}
	var report Report
	for _, crd := range wanted {
		change, err := writeCRD(ctx, api, crd)
		if err != nil {
			return report, err
		}
		report.Changes = append(report.Changes, change)
	}
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	for _, crd := range wanted {
		if err := waitEstablished(ctx, api, crd.GetName()); err != nil {
			return report, err
		}
	}
	return report, nil
}

// definitions is the resource of CustomResourceDefinition objects.
func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// compare reads a definition and tells what to write (nil: nothing) and what kind of change that is.
func compare(ctx context.Context, api dynamic.ResourceInterface, ours *unstructured.Unstructured) (*unstructured.Unstructured, Change, error) {
	change := Change{Object: objectName(ours), Action: Created}
	theirs, err := api.Get(ctx, ours.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return skeleton(ours), change, nil
	case err != nil:
		return nil, change, fmt.Errorf("%s: read: %w", change.Object, err)
	case theirs.GetDeletionTimestamp() != nil:
		return nil, change, &ConflictError{Name: ours.GetName(), Reasons: []string{"it is being deleted"}}
	}
	result, diff, err := reconcile(theirs, ours)
	change.Action, change.Difference = Updated, diff
	if result == nil {
		change.Action = Unchanged
	}
	return result, change, err
}

// writeCRD compares again and writes; a writer in between makes it start over.
func writeCRD(ctx context.Context, api dynamic.ResourceInterface, ours *unstructured.Unstructured) (Change, error) {
	var change Change
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		result, next, err := compare(ctx, api, ours)
		change = next
		if err != nil || result == nil {
			return err
		}
		if err := write(ctx, api, result, change.Action); err != nil {
			return fmt.Errorf("%s: write: %w", change.Object, err)
		}
		return nil
	})
	return change, err
}

// write creates or applies a definition. An apply can not demand that the object is absent and would run over a definition
// that somebody else has just created; a create can, and reports that as a conflict.
func write(ctx context.Context, api dynamic.ResourceInterface, crd *unstructured.Unstructured, action Action) error {
	if action != Created {
		_, err := api.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: Manager, Force: true})
		return err
	}
	_, err := api.Create(ctx, crd, metav1.CreateOptions{FieldManager: Manager})
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(definitions().GroupResource(), crd.GetName(), err)
	}
	return err
}

// waitEstablished waits until the server serves the kind.
func waitEstablished(ctx context.Context, api dynamic.ResourceInterface, name string) error {
	reason := "the server has not looked at it yet"
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		crd, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		established, why := establishment(crd)
		if why != "" {
			reason = why
		}
		return established, nil
	})
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition/%s: not served (%s): %w", name, reason, err)
	}
	return nil
}

// establishment reads the conditions of a definition; the text says what is against it.
func establishment(crd *unstructured.Unstructured) (bool, string) {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	established, reason := false, ""
	for _, entry := range conditions {
		condition := object(entry)
		holds := text(condition, "status") == "True"
		switch text(condition, "type") {
		case "Established":
			established = holds
		case "NamesAccepted":
			if !holds {
				reason = "its names are not accepted: " + text(condition, "message")
			}
		}
	}
	return established, reason
}

// Namespace creates the namespace of the options unless it exists.
func Namespace(ctx context.Context, client dynamic.Interface, options Options) (Change, error) {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": options.withDefaults().Namespace},
	}}
	return ensure(ctx, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}), namespace, options)
}

// DefaultProject creates the project "default", which allows every source, destination and kind, unless it exists.
func DefaultProject(ctx context.Context, client dynamic.Interface, options Options) (Change, error) {
	namespace := options.withDefaults().Namespace
	project := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.AppProjectKind,
		"metadata": map[string]any{"name": "default", "namespace": namespace},
		"spec": map[string]any{
			"sourceRepos":              []any{"*"},
			"destinations":             []any{map[string]any{"server": "*", "namespace": "*"}},
			"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
		},
	}}
	return ensure(ctx, client.Resource(v1alpha1.AppProjects()).Namespace(namespace), project, options)
}

// ensure creates an object unless it exists. A kind just defined may be unknown to one of several servers for a moment.
func ensure(ctx context.Context, api dynamic.ResourceInterface, want *unstructured.Unstructured, options Options) (Change, error) {
	change := Change{Object: objectName(want), Action: Unchanged}
	ctx, cancel := context.WithTimeout(ctx, options.withDefaults().Timeout)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if _, last = api.Get(ctx, want.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(last) {
			return last == nil, last
		}
		_, last = api.Create(ctx, want, metav1.CreateOptions{FieldManager: Manager})
		switch {
		case last == nil:
			change.Action = Created
			return true, nil
		case apierrors.IsAlreadyExists(last), apierrors.IsNotFound(last):
			return false, nil
		}
		return false, last
	})
	if err != nil {
		// The reason of the last attempt says more than the deadline.
		if last != nil {
			err = last
		}
		return change, fmt.Errorf("%s: create: %w", change.Object, err)
	}
	return change, nil
}

// objectName is how messages name an object.
func objectName(u *unstructured.Unstructured) string {
	name := u.GetKind() + "/"
	if ns := u.GetNamespace(); ns != "" {
		name += ns + "/"
	}
	return name + u.GetName()
}
