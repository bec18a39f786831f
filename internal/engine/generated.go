package engine

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// without is o without the values at paths; o itself is not changed.
func without(o *unstructured.Unstructured, paths []job.Path) *unstructured.Unstructured {
	if len(paths) == 0 {
		return o
	}
	c := o.DeepCopy()
	for _, p := range paths {
		p.Set(c.Object, nil)
	}
	return c
}

// folded puts paths below stringData where the cleaned object has them: below data.
func folded(o *unstructured.Unstructured, paths []job.Path) []job.Path {
	if o.GetKind() != "Secret" {
		return paths
	}
	out := make([]job.Path, len(paths))
	for i, p := range paths {
		if len(p) == 2 && p[0] == "stringData" {
			p = job.Path{"data", p[1]}
		}
		out[i] = p
	}
	return out
}

// bodyFor is what is sent for an object that may exist: its generated fields keep the values they have in the cluster
// (DESIGN.md §2.2), so that a password is made up once.
func (e *Engine) bodyFor(ctx context.Context, d *desired, exists bool) ([]byte, error) {
	body := e.body(d)
	if len(d.generated) == 0 || !exists {
		return body, nil
	}
	live, err := e.cluster.Get(ctx, d.resource, d.key)
	if apierrors.IsNotFound(err) {
		return body, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.key, err)
	}
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("%s: %w", d.key, err)
	}
	for _, p := range d.generated {
		if v, ok := p.Get(live.Object); ok {
			p.Set(object, v)
		}
	}
	return json.Marshal(object)
}
