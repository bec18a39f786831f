package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// leftAlone is the result of a Secret among local manifests. An operation stands in the custom resource, where everybody who
// may read applications would read the values.
const leftAlone = "is left as it is: the values of a Secret are not taken from local manifests"

// local tells that the operation brings its manifests with it (contract §1.2).
func (r *running) local() bool { return len(r.op.Sync.Manifests) > 0 || noted(&r.op, localNote) != "" }

// withoutManifests drops the manifests of an operation that has ended; that it had some stays known.
func (r *running) withoutManifests() {
	if n := len(r.op.Sync.Manifests); n > 0 {
		r.noteDown(localNote, strconv.Itoa(n))
		r.op.Sync.Manifests = nil
	}
}

func localFault(app *v1alpha1.Application, s *v1alpha1.SyncOperation) string {
	switch {
	case len(s.Manifests) == 0:
		return ""
	case s.Source != nil || len(s.Sources) > 0:
		return "operation.sync: manifests and a source of the operation's own exclude each other"
	case automated(app).Enabled && !s.DryRun:
		return "operation.sync.manifests: local manifests are refused while automated sync is on, which would put back what the source " +
			"declares; switch it off first, or make it a dry run"
	}
	return ""
}

// aimLocal is the look at the manifests of the operation. The project's rules, the tracking and prune by request hold as
// always; a project that demands signatures gets none.
func (e *Engine) aimLocal(ctx context.Context, st *state, l *look) (*look, error) {
	r := st.running
	t := &look{app: l.app, rules: l.rules, invalid: l.invalid}
	if t.invalid == nil && l.rules.Signed() {
		t.invalid = errors.New("operation.sync.manifests: the project demands signed commits, and local manifests are none")
	}
	if t.invalid != nil {
		return t, nil
	}
	if r.rendered == nil {
		var err error
		if r.rendered, r.kept, err = readLocal(r.op.Sync.Manifests); err != nil {
			t.invalid = err
			return t, nil
		}
	}
	t.rendering = r.rendered
	e.compareTo(ctx, st, t, false)
	for i := range r.kept {
		k := &r.kept[i]
		if k.Namespace == "" {
			k.Namespace = l.app.Spec.Destination.Namespace
		}
		r.note(*k, "v1", v1alpha1.ResultSynced, leftAlone)
	}
	t.extras = slices.DeleteFunc(t.extras, func(x cluster.Live) bool { return slices.Contains(r.kept, x.Key) })
	return t, ctx.Err()
}

// readLocal reads manifests as if a source had rendered to them; kept are the Secrets among them, which stay as they are.
func readLocal(texts []string) (*rendering, []manifest.Key, error) {
	out := &rendering{}
	var kept []manifest.Key
	size := 0
	for i, text := range texts {
		size += len(text)
		objects, warnings, err := manifest.Parse(fmt.Sprintf("operation.sync.manifests[%d]", i), []byte(text), manifest.Options{})
		if err != nil {
			return nil, nil, err
		}
		out.warnings = append(out.warnings, warnings...)
		for _, o := range objects {
			if k := o.Key(); k.Group == "" && k.Kind == "Secret" {
				kept = append(kept, k)
				continue
			}
			out.objects = append(out.objects, o)
		}
	}
	if size > job.MaxRendered || len(out.objects) > job.MaxObjects {
		return nil, nil, fmt.Errorf("operation.sync.manifests: are more than %d MB or %d objects", job.MaxRendered>>20, job.MaxObjects)
	}
	var err error
	out.digest, err = digestOf(out.objects, nil)
	return out, kept, err
}
