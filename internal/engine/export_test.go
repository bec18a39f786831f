package engine

import "github.com/lockstep-cd/lockstep/internal/pressure"

// Deafen makes the engine miss changes of the inputs, as if nobody had thought of waking anybody for them.
func (e *Engine) Deafen(inputs ...Input) {
	for _, in := range inputs {
		e.deaf.Store(in, true)
	}
}

// Asked tells that an application waits for a worker, or has one.
func (e *Engine) Asked(key string) bool { return e.queue.Asked(key) }

// Pace is where the bound of requests to the cluster stands.
func (e *Engine) Pace() pressure.State { return e.pace.State() }
