package engine

import (
	"fmt"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// HookDeadlineAnnotation on a hook is how long it may run, as a Go duration. Without it a hook has the deadline of its own
// Job, or none.
const HookDeadlineAnnotation = "lockstep.dev/hook-deadline"

// waiting is the outcome of a look at a sync that waits; after a while it says since when.
func (e *Engine) waiting(st *state, l *look, reason string) outcome {
	r := st.running
	if left := r.started.Add(e.opts.WaitNote).Sub(e.opts.Now()); left > 0 {
		e.queue.AddAfter(st.key, queue.Housekeeping, left)
	} else {
		reason += "; the sync has been under way since " + r.started.UTC().Format(time.RFC3339)
	}
	return outcome{state: r.state(l, v1alpha1.OperationRunning, reason)}
}

// deadline is how long a hook may run; 0 is without end.
func deadline(d *desired) (time.Duration, error) {
	text, ok := d.GetAnnotations()[HookDeadlineAnnotation]
	if !ok {
		return 0, nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit <= 0 {
		return 0, fmt.Errorf("annotation %s: %q is no duration such as 10m", HookDeadlineAnnotation, text)
	}
	return limit, nil
}

// overdue tells that a running hook is past its deadline, and wakes the application when it will be.
func (e *Engine) overdue(st *state, d *desired, live cluster.Live) (time.Duration, bool) {
	limit, err := deadline(d)
	if err != nil || limit == 0 {
		return 0, false // told when the source was made ready
	}
	left := time.Unix(live.Created, 0).Add(limit).Sub(e.opts.Now())
	if left > 0 {
		e.queue.AddAfter(st.key, queue.Commits, left)
	}
	return limit, left <= 0
}
