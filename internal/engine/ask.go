package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// asking is the name that what people ask for through a face is written under.
const asking = "lockstep-api"

// Refresh asks for a new look at the sources of an application and waits for it as long as ctx lasts; hard also drops what was
// rendered before. The answer is the application after that look.
func (e *Engine) Refresh(ctx context.Context, name string, hard bool) (*v1alpha1.Application, error) {
	kind := "normal"
	if hard {
		kind = "hard"
	}
	feed := e.Follow()
	defer feed.Close()
	stamp := time.Now().UTC().Format(time.RFC3339Nano)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		RefreshAnnotation: kind, refreshTimestampAnnotation: stamp,
	}}})
	if err != nil {
		return nil, fmt.Errorf("application %s: refresh: %w", name, err)
	}
	u, err := e.applications.client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: asking})
	if err != nil {
		return nil, fmt.Errorf("application %s: refresh: %w", name, err)
	}
	e.applications.answered(u)
	for ctx.Err() == nil {
		if app := e.Application(name); app == nil || app.UID != u.GetUID() || app.Annotations[refreshTimestampAnnotation] != stamp {
			if app == nil {
				break
			}
			return app, nil
		}
		feed.Next(ctx)
	}
	return nil, fmt.Errorf("application %s: refresh: %w", name, context.DeadlineExceeded)
}
