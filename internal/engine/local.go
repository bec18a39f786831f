package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// local is the look of a sync to manifests that came with the operation instead of the source (contract §1.2). The
// project's rules, the marks and the checks are those of any sync; automated sync would put the source's back, so the two
// exclude each other.
func (e *Engine) local(ctx context.Context, st *state, l *look) *look {
	t := &look{app: l.app, rules: l.rules, invalid: l.invalid}
	if t.invalid != nil {
		return t
	}
	if automated(l.app).Enabled {
		t.invalid = errors.New("operation.sync.manifests: local manifests are refused while automated sync is on, which would " +
			"put back what the source declares; switch it off first")
		return t
	}
	rendered := &rendering{inputs: "local"}
	if l.rendering != nil {
		rendered.revisions = l.rendering.revisions
	}
	size := 0
	for i, text := range st.running.op.Sync.Manifests {
		size += len(text)
		file := fmt.Sprintf("operation.sync.manifests[%d]", i)
		objects, warnings, err := manifest.Parse(file, []byte(text), manifest.Options{})
		rendered.objects = append(rendered.objects, objects...)
		rendered.warnings = append(rendered.warnings, warnings...)
		switch {
		case err != nil:
			t.invalid = err
			return t
		case size > job.MaxRendered || len(rendered.objects) > job.MaxObjects:
			t.invalid = fmt.Errorf("operation.sync.manifests: are more than %d MB or %d objects", job.MaxRendered>>20, job.MaxObjects)
			return t
		}
	}
	var err error
	if rendered.digest, err = digestOf(rendered.objects, nil); err != nil {
		t.invalid = err
		return t
	}
	t.rendering = rendered
	e.compareTo(ctx, st, t, false)
	return t
}
