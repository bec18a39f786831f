package engine

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// writeTries is how often a status is written when others write the Application meanwhile.
const writeTries = 5

// refreshRequest is one request for a look.
type refreshRequest struct{ kind, at string }

func refreshOf(app *v1alpha1.Application) refreshRequest {
	return refreshRequest{kind: app.Annotations[RefreshAnnotation], at: app.Annotations[refreshTimestampAnnotation]}
}

// writeAgain writes a status that also takes up requests, after somebody else wrote the Application in between. What was
// asked for meanwhile is another request: it stays, and is seen to with the next look.
func (e *Engine) writeAgain(ctx context.Context, st *state, l *look, patch []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return fmt.Errorf("application %s: status: %w", l.app.Name, err)
	}
	var last error
	for range writeTries {
		live, err := e.applications.client.Get(ctx, l.app.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // the watch says so, too
		}
		if err != nil {
			return fmt.Errorf("application %s: %w", l.app.Name, err)
		}
		if live.GetUID() != l.app.UID {
			return nil // another one of the same name
		}
		onlySeen(fields, l.app, live)
		if patch, err = json.Marshal(fields); err != nil {
			return fmt.Errorf("application %s: status: %w", l.app.Name, err)
		}
		if last = e.write(ctx, st.key, l.app, patch); !apierrors.IsConflict(last) {
			return last
		}
	}
	return last
}

// onlySeen leaves in a patch only the requests that live still has as they were looked at.
func onlySeen(fields map[string]any, seen *v1alpha1.Application, live *unstructured.Unstructured) {
	if _, taken := fields["operation"]; taken && !sameJSON(operationOf(live), seen.Operation) {
		delete(fields, "operation")
	}
	meta, _ := fields["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		fields["metadata"] = meta
	}
	meta["resourceVersion"] = live.GetResourceVersion()
	annotations, _ := meta["annotations"].(map[string]any)
	now := live.GetAnnotations()
	if refreshOf(seen) != (refreshRequest{kind: now[RefreshAnnotation], at: now[refreshTimestampAnnotation]}) {
		delete(annotations, RefreshAnnotation)
		delete(annotations, refreshTimestampAnnotation)
	}
}

// operationOf is the request in a live Application; nil when there is none that can be read.
func operationOf(live *unstructured.Unstructured) *v1alpha1.Operation {
	fields, found, _ := unstructured.NestedMap(live.Object, "operation")
	op := &v1alpha1.Operation{}
	if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, op) != nil {
		return nil
	}
	return op
}
