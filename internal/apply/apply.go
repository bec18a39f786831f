// Package apply owns every write to a destination cluster: server-side apply, create, delete, the namespace. It decides
// nothing: what is written, and whether, comes from the plan. It imports values, never another link.
package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Manager is the field manager of all our writes.
const Manager = manifest.FieldManager

// Target is how one object is reached.
type Target struct {
	Resource   schema.GroupVersionResource
	Namespaced bool
	// Patchable is false for kinds that can only be created (access reviews and the like).
	Patchable bool
}

// Mode of an apply.
type Mode struct {
	// DryRun writes nothing and answers what would be.
	DryRun bool
	// Loose lets the API server drop fields that it does not know (Validate=false); else they are an error.
	Loose bool
}

// Writer writes to one cluster.
type Writer struct {
	client dynamic.Interface
}

// New makes a writer. The configuration should carry no client-side rate limit.
func New(config *rest.Config) (*Writer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return &Writer{client: client}, nil
}

func (w *Writer) at(t Target, namespace string) dynamic.ResourceInterface {
	if t.Namespaced {
		return w.client.Resource(t.Resource).Namespace(namespace)
	}
	return w.client.Resource(t.Resource)
}

// Apply makes the cluster's object what body declares and answers the object as it is then. The body is JSON after Clean;
// key names the object in it.
func (w *Writer) Apply(ctx context.Context, t Target, key manifest.Key, body []byte, m Mode) (*unstructured.Unstructured, error) {
	var dry []string
	if m.DryRun {
		dry = []string{metav1.DryRunAll}
	}
	if !t.Patchable || key.Name == "" {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(body); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		made, err := w.at(t, key.Namespace).Create(ctx, o,
			metav1.CreateOptions{FieldManager: Manager, DryRun: dry, FieldValidation: validation(m)})
		return made, problem(key, err)
	}
	force := true
	out, err := w.at(t, key.Namespace).Patch(ctx, key.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: Manager, Force: &force, DryRun: dry, FieldValidation: validation(m)})
	return out, problem(key, err)
}

func validation(m Mode) string {
	if m.Loose {
		return metav1.FieldValidationWarn
	}
	return metav1.FieldValidationStrict
}

// Gone describes the object that is deleted. The delete is refused by the API server when the object was replaced or
// changed since it was looked at.
type Gone struct {
	Key             manifest.Key
	UID             types.UID
	ResourceVersion string
	// Propagation is foreground (default), background or orphan.
	Propagation metav1.DeletionPropagation
	DryRun      bool
}

// Delete deletes the object, unless it is another one by now. An object that is gone already is no error.
func (w *Writer) Delete(ctx context.Context, t Target, g Gone) error {
	if g.Propagation == "" {
		g.Propagation = metav1.DeletePropagationForeground
	}
	opts := metav1.DeleteOptions{
		PropagationPolicy: &g.Propagation,
		Preconditions:     &metav1.Preconditions{UID: &g.UID},
	}
	if g.ResourceVersion != "" {
		opts.Preconditions.ResourceVersion = &g.ResourceVersion
	}
	if g.DryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	err := w.at(t, g.Key.Namespace).Delete(ctx, g.Key.Name, opts)
	if apierrors.IsNotFound(err) {
		return nil
	}
	err = problem(g.Key, err)
	var refused *Error
	if errors.As(err, &refused) {
		refused.Reason = "delete: " + refused.Reason
	}
	return err
}

// Namespace makes sure that the namespace exists, with the labels and annotations given.
func (w *Writer) Namespace(ctx context.Context, name string, labels, annotations map[string]string) error {
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	if len(labels) > 0 {
		ns.SetLabels(labels)
	}
	if len(annotations) > 0 {
		ns.SetAnnotations(annotations)
	}
	body, err := ns.MarshalJSON()
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	target := Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Patchable: true}
	_, err = w.Apply(ctx, target, manifest.Key{Kind: "Namespace", Name: name}, body, Mode{})
	return err
}

// Error is a refusal by the API server, in words for people: the object, the reason, no values.
type Error struct {
	Object manifest.Key
	Reason string
	// Retry tells that the same request may go through later.
	Retry bool
	cause error
}

// Error is the sentence.
func (e *Error) Error() string { return e.Object.String() + ": " + e.Reason }

// Unwrap gives the API server's own error to errors.As and errors.Is.
func (e *Error) Unwrap() error { return e.cause }

func problem(key manifest.Key, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: apply: %w", key, err)
	}
	return &Error{Object: key, Reason: reason(err), Retry: retryable(err), cause: err}
}

// Merge lays a JSON merge patch over the object and answers it as it is then.
func (w *Writer) Merge(ctx context.Context, t Target, key manifest.Key, patch []byte) (*unstructured.Unstructured, error) {
	out, err := w.at(t, key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	return out, problem(key, err)
}

// Create makes an object that has no desired form of its own, such as an Event.
func (w *Writer) Create(ctx context.Context, t Target, o *unstructured.Unstructured) error {
	_, err := w.at(t, o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: Manager})
	return problem(manifest.KeyOf(o), err)
}
