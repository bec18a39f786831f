package engine

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// Trouble is what may be over a moment later: the API server is away, busy or slow, a webhook does not answer, an object
// changed in between. It ends no attempt, since a new attempt runs its hooks again (issue 4, "no hook ran twice"): the
// attempt goes on, with growing pauses, until the trouble has lasted for troubleLimit without a step that went well.
const (
	troubleLimit = 5 * time.Minute
	troubleFirst = 250 * time.Millisecond
	troubleMost  = 15 * time.Second
)

// trouble is how long an attempt has met with it.
type trouble struct {
	since time.Time
	pause time.Duration
}

// passes tells that the same request may go through later.
func passes(err error) bool {
	var refused *apply.Error
	return !errors.As(err, &refused) || refused.Retry
}

// problem keeps the attempt waiting for an error that is nobody's refusal, and ends it when that goes on for too long.
func (e *Engine) problem(ctx context.Context, st *state, l *look, err error) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	t, now := &st.running.trouble, e.opts.Now()
	if t.since.IsZero() {
		t.since = now
	}
	if !passes(err) || now.Sub(t.since) > troubleLimit {
		*t = trouble{}
		return e.fail(st, l, err.Error(), false), nil
	}
	t.pause = min(max(2*t.pause, troubleFirst), troubleMost)
	e.queue.AddAfter(st.key, queue.Commits, t.pause)
	message := err.Error() + "; it is tried again"
	var waits *waitError
	if errors.As(err, &waits) {
		message = waits.text
	}
	return outcome{state: st.running.state(l, v1alpha1.OperationRunning, message)}, nil
}
