package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// aim is the look that the operation works on: the one at the spec while the spec still renders to the operation's goal, and
// one of its own where the operation names revisions, sources or manifests, or goes on with what it began.
func (e *Engine) aim(ctx context.Context, st *state, l *look) (*look, error) {
	r := st.running
	s := r.op.Sync
	if r.local() {
		return e.aimLocal(ctx, st, l)
	}
	own := s.Source != nil || len(s.Sources) > 0
	if !r.fixed() && l.rendering != nil && (r.goal == "" && r.asksFor(l) || r.goal != "" && r.goal == l.goal()) {
		return l.stillValid(), nil // the commit may have moved on, what it renders to did not
	}
	fixed := r.asked()
	if !own && (len(fixed) == 0 || l.rendering != nil && slices.Equal(fixed, l.rendering.revisions)) {
		return l, nil
	}
	t := &look{app: l.app, rules: l.rules, invalid: l.invalid}
	if t.invalid != nil {
		return t, nil
	}
	req := request{key: st.key, app: l.app, sources: l.sources(r), rules: l.rules, fixed: fixed, unreached: &atomic.Bool{}}
	if err := e.capabilities(&req); err != nil {
		t.failed = err
		return t, nil
	}
	rendered, err := e.chain().render(ctx, req, r.rendered)
	if err != nil {
		t.blame(err, req.unreached.Load())
		return t, ctx.Err()
	}
	t.rendering, r.rendered = rendered, rendered
	e.compareTo(ctx, st, t, false)
	return t, ctx.Err()
}

// asked are the revisions that the operation works on, as far as they are known; empty asks for the spec's.
func (r *running) asked() []string {
	s := r.op.Sync
	switch {
	case r.goal != "" && len(r.revisions) > 0:
		return r.revisions
	case len(s.Revisions) > 0:
		return s.Revisions
	case s.Revision != "":
		return []string{s.Revision}
	}
	return nil
}

// asksFor tells whether the operation, which has no goal yet, asks for what l found.
func (r *running) asksFor(l *look) bool {
	fixed := r.asked()
	return len(fixed) == 0 || slices.Equal(fixed, l.rendering.revisions)
}

// stillValid is the look at what the source rendered to last, for an operation that works on just that: a newer commit that
// does not render is not its fault.
func (l *look) stillValid() *look {
	var source *sourceFault
	if !errors.As(l.failed, &source) || !l.judged {
		return l
	}
	t := *l
	t.failed = nil
	return &t
}

// sources are those that the operation works on.
func (l *look) sources(r *running) []v1alpha1.ApplicationSource {
	switch {
	case r != nil && len(r.sources) > 0:
		return r.sources
	case r != nil && len(r.op.Sync.Sources) > 0:
		return r.op.Sync.Sources
	case r != nil && r.op.Sync.Source != nil:
		return []v1alpha1.ApplicationSource{*r.op.Sync.Source}
	}
	return effective(l.app.Spec)
}
