// Package pool owns the parent side of rendering in workers: it starts them, gives each one rendering of one project at a
// time, answers what they ask, and ends them (DESIGN.md §2.2). It holds everything that a worker says for hostile.
//
// It does not render; what it starts is internal/render/worker, most often in the same binary.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// Options of a pool. The zero value is that of the product.
type Options struct {
	// Command starts a worker; by default this program, as a worker.
	Command []string
	// Size is the number of workers that render at a time; default GOMAXPROCS. A project that waits behind others for
	// longer than Patience gets one more, up to twice the size.
	Size int
	// Renders is how many renderings a worker makes before it is replaced; default 100.
	Renders int
	// Idle is how long the last worker stays without work, default 5 minutes; Spare how long the others do, default 10 s.
	Idle, Spare time.Duration
	// Patience is how long a rendering waits for a worker of its own project, and behind other projects; default 1 s.
	Patience time.Duration
	// Time and CPU bound one rendering, Memory what a worker allocates, in bytes; default 90 s, 60 s and 768 MB. Waiting
	// for the parent, which may have to fetch something, is not counted.
	Time, CPU time.Duration
	Memory    int64
	// AllowUnsandboxed goes on where the system can not build the sandbox.
	AllowUnsandboxed bool
	// Log takes what operators should know; nil drops it.
	Log *slog.Logger
}

func (o Options) completed() Options {
	o.Size = first(o.Size, runtime.GOMAXPROCS(0))
	o.Renders = first(o.Renders, 100)
	o.Idle, o.Spare = first(o.Idle, 5*time.Minute), first(o.Spare, 10*time.Second)
	o.Patience = first(o.Patience, time.Second)
	o.Time, o.CPU = first(o.Time, 90*time.Second), first(o.CPU, time.Minute)
	o.Memory = first(o.Memory, 768<<20)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func first[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// ErrClosed is the answer of a pool that was closed.
var ErrClosed = errors.New("rendering has stopped")

// Pool is a set of workers. It is safe for use by several goroutines.
type Pool struct {
	o        Options
	launcher *launcher

	mu     sync.Mutex
	closed bool
	// alive are all workers; those in idle have no work, the least recently used first. busy counts the work by project.
	alive map[*process]bool
	idle  []*process
	busy  map[string]int
	line  []*ticket

	tidying sync.WaitGroup
	stop    chan struct{}
}

// New makes a pool and starts one worker to see that the walls stand: where they can not be built it is ErrNoSandbox,
// unless the options allow that. Close must be called.
func New(ctx context.Context, o Options) (*Pool, error) {
	p := &Pool{o: o.completed(), alive: map[*process]bool{}, busy: map[string]int{}, stop: make(chan struct{})}
	var err error
	if p.launcher, err = newLauncher(p.o); err != nil {
		return nil, err
	}
	w, err := p.launcher.start(ctx)
	if err != nil {
		p.launcher.close()
		return nil, err
	}
	for _, wall := range w.missing {
		p.o.Log.Warn("rendering without a wall of the sandbox", "reason", wall)
	}
	p.alive[w], p.idle = true, []*process{w}
	p.tidying.Go(p.tidy)
	return p, nil
}

// Render renders as render.Render does; what runs templates runs in a worker. A rendering that outgrows a bound, or whose
// worker is lost, is a *Failure; nothing else suffers from it.
func (p *Pool) Render(ctx context.Context, in job.Input) (job.Output, error) {
	c, err := render.Choose(in)
	if err != nil {
		return job.Output{}, err
	}
	if c.Plain() {
		out, err := render.Run(ctx, c.Tool, c.Input)
		return c.Finish(out), err
	}
	out, err := p.apart(ctx, c)
	return c.Finish(out), err
}

// apart renders in a worker.
func (p *Pool) apart(ctx context.Context, c render.Choice) (job.Output, error) {
	project := c.Input.Project
	w, err := p.acquire(ctx, project, c.Input.Urgent)
	if err != nil {
		return job.Output{}, err
	}
	out, err := converse(ctx, w, c, p.o)
	p.release(w, project, err == nil)
	if err != nil {
		return job.Output{}, err
	}
	return out, render.CheckBounds(c.Input.Path, out.Objects)
}

// Close ends all workers and waits for them. Renderings under way end with an error.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	close(p.stop)
	var all []*process
	for w := range p.alive {
		all = append(all, w)
	}
	for _, t := range p.line {
		t.got <- turn{err: ErrClosed}
	}
	p.line = nil
	p.mu.Unlock()
	for _, w := range all {
		w.end()
	}
	p.tidying.Wait()
	for _, w := range all {
		<-w.ended
	}
	p.launcher.close()
}

// Workers is how many workers there are, and how many of them render.
func (p *Pool) Workers() (alive, rendering int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.alive), len(p.alive) - len(p.idle)
}

// ErrNoSandbox says that workers can not be walled in here.
var ErrNoSandbox = errors.New("rendering needs a sandbox")

func noSandbox(reason string) error {
	return fmt.Errorf("%w: %s; --allow-unsandboxed renders without one, for sources that are all trusted", ErrNoSandbox, reason)
}
