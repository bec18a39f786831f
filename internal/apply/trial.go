package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Trial asks whether an object could be made, before the one of its name is deleted for it. Nothing is written. It asks
// under another name, since its own is taken; a kind that ties the name to the rest is refused then. Body is JSON after
// Clean. The error is nil when the object could be made.
func (w *Writer) Trial(ctx context.Context, t Target, key manifest.Key, body []byte, m Mode) error {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(body); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	o.SetName(another(key.Name))
	if key.Group == "" && key.Kind == "Service" {
		letGo(o)
	}
	_, err := w.at(t, key.Namespace).Create(ctx, o,
		metav1.CreateOptions{FieldManager: Manager, DryRun: []string{metav1.DryRunAll}, FieldValidation: validation(m)})
	if apierrors.IsAlreadyExists(err) { // by chance; whatever could be wrong was looked at before
		return nil
	}
	return problem(key, err)
}

// another is a name of the same length and form.
func another(name string) string {
	if name == "" {
		return name
	}
	last := "x"
	if name[len(name)-1] == 'x' {
		last = "y"
	}
	return name[:len(name)-1] + last
}

// letGo drops what a live Service holds and no second one can have: addresses and ports of nodes.
func letGo(service *unstructured.Unstructured) {
	spec, _ := service.Object["spec"].(map[string]any)
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
}
