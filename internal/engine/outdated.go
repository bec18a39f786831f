package engine

import (
	"context"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/queue"
)

// outdated are the applications whose rendering was made by another version of the tools. They are rendered again one at a
// time, after everything else (DESIGN.md §4); until then the old rendering holds.
type outdated struct {
	mu sync.Mutex
	// line is the order of their turns; who is not in waiting any more has left it.
	line    []string
	waiting map[string]bool
	current string
}

func newOutdated() *outdated { return &outdated{waiting: map[string]bool{}} }

// add puts an application in line; it tells whether its turn is now.
func (o *outdated) add(app string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == "" {
		o.current = app
		return true
	}
	if o.current != app && !o.waiting[app] {
		o.waiting[app] = true
		o.line = append(o.line, app)
	}
	return false
}

// turn tells whether it is the application's turn.
func (o *outdated) turn(app string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.current == app
}

// done takes an application out of the line; next is the one whose turn comes with that.
func (o *outdated) done(app string) (next string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != app {
		delete(o.waiting, app)
		return ""
	}
	o.current = ""
	for len(o.line) > 0 && o.current == "" {
		if o.waiting[o.line[0]] {
			o.current = o.line[0]
			delete(o.waiting, o.current)
		}
		o.line = o.line[1:]
	}
	return o.current
}

// rendered renders for a look, and registers what was read.
func (e *Engine) rendered(ctx context.Context, st *state, r request) (*rendering, error) {
	again := e.outdated.turn(st.key)
	r.afresh = r.afresh || again
	now, err := e.chain().render(ctx, r, st.rendering)
	switch {
	case err != nil && again && st.rendering != nil && ctx.Err() == nil:
		// The old rendering stays what was valid last. It is not taken for what the source says any more.
		stale := *st.rendering
		stale.inputs = ""
		st.rendering = &stale
	case err == nil && now.tool == e.opts.Version:
		e.renderedAgain(st.key)
	case err == nil && e.outdated.add(st.key):
		e.queue.Add(st.key, queue.Housekeeping)
	}
	if err != nil {
		e.readers.set(st.key, nil) // any commit may mend it
		return nil, err
	}
	if now != st.rendering || !e.readers.knows(st.key) {
		st.rendering = now
		e.register(st.key, r.app, now)
	}
	return now, nil
}

// distrust forgets all that was found out about an application, also on disk.
func (e *Engine) distrust(st *state) {
	st.rendering, st.desired, st.verdicts = nil, nil, nil
	e.readers.set(st.key, nil)
	if e.opts.Cache != nil {
		e.opts.Cache.Drop(st.key)
	}
}

// renderedAgain takes the application out of the line, and looks at the next when it was this one's turn.
func (e *Engine) renderedAgain(key string) {
	if next := e.outdated.done(key); next != "" {
		e.queue.Add(next, queue.Housekeeping)
	}
}
