// Package lease owns the question which process is the active one (DESIGN.md §3): one holder of the Lease works, others
// stand by. It knows nothing of what the holder does, and imports nothing of ours.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// ErrLost says that the lease went to another process, or could not be renewed in time: whatever this process still does
// must end.
var ErrLost = errors.New("the lease is lost")

// MinDuration is the shortest duration of a lease; the API holds whole seconds.
const MinDuration = time.Second

// Options of a lease.
type Options struct {
	// REST is the way to the cluster that holds the Lease.
	REST *rest.Config
	// Namespace and Name of the Lease.
	Namespace, Name string
	// Identity is the stable name of this process: one that restarts under its old name takes its lease at once.
	Identity string
	// Duration after which others may take the lease of a holder that does not renew it, in whole seconds; default 15 s.
	// It is renewed every third of it, and the holder gives up after two thirds without success.
	Duration time.Duration
	// Log says who holds the lease when that changes.
	Log *slog.Logger
}

// Lease is one process's part in it.
type Lease struct {
	opts   Options
	client coordination.LeaseInterface
	// process tells two processes apart that have the same identity.
	process string

	mu    sync.Mutex
	state State
	// seen is the holder's last renewal with the time of our own clock: clocks of two machines are never compared.
	seen struct {
		holder, process, renewed string
		at                       time.Time
	}
	// renewed is when this process last wrote the lease: the start of the request, for the server may have counted from
	// then on.
	renewed time.Time
}

// State is what a process knows of the lease.
type State struct {
	// Held tells that this process is the active one.
	Held bool
	// Holder is the identity of the active one, as last seen; empty when there is none or nobody could be asked.
	Holder string
	// Err is why the lease could not be asked for; nil when the answer was that somebody else holds it.
	Err error
}

// New prepares a lease; nothing is asked before Hold.
func New(o Options) (*Lease, error) {
	if o.Duration == 0 {
		o.Duration = 15 * time.Second
	}
	switch {
	case o.Identity == "":
		return nil, errors.New("lease: an identity is missing")
	case o.Duration < MinDuration || o.Duration%time.Second != 0:
		return nil, fmt.Errorf("lease: a duration of %s is not a number of whole seconds", o.Duration)
	}
	client, err := coordination.NewForConfig(o.REST)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return &Lease{opts: o, client: client.Leases(o.Namespace), process: rand.Text()}, nil
}

// State tells whether this process is the active one, and who else is.
func (l *Lease) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *Lease) set(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

// Hold waits for the lease, then runs work while it is held; the context of work ends when the lease is lost. It returns
// what work returned, ErrLost when the lease was lost, or nil when ctx ended before the lease was had. The lease is given
// back after work has ended: a successor never writes beside us.
func (l *Lease) Hold(ctx context.Context, work func(context.Context) error) error {
	if !l.wait(ctx) {
		return nil
	}
	l.opts.Log.Info("lease held", "identity", l.opts.Identity)
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var kept sync.WaitGroup
	kept.Go(func() {
		if err := l.keep(working); err != nil {
			l.set(State{Holder: l.seen.holder, Err: err}) // first, so that nobody who looks believes that work goes on
			stop(err)
		}
	})
	err := work(working)
	lost := context.Cause(working)
	stop(nil)
	kept.Wait()
	if errors.Is(lost, ErrLost) {
		return errors.Join(lost, err)
	}
	l.set(State{})
	l.give(ctx)
	return err
}

// wait returns true when the lease is ours, false when ctx ends.
func (l *Lease) wait(ctx context.Context) bool {
	every := l.opts.Duration / 5
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		// Each try has a bound, so that an answer that never comes is not waited for.
		try, cancel := context.WithTimeout(ctx, max(every, time.Second))
		held, err := l.take(try)
		cancel()
		if held {
			l.set(State{Held: true, Holder: l.opts.Identity})
			return true
		}
		l.set(State{Holder: l.seen.holder, Err: err})
		said = l.tell(ctx, said, err)
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// tell logs why the lease is waited for, when that is something new.
func (l *Lease) tell(ctx context.Context, said string, err error) string {
	switch {
	case ctx.Err() != nil:
	case err != nil && said != err.Error():
		said = err.Error()
		l.opts.Log.Warn("lease not to be had", "error", err)
	case err == nil && said != l.seen.holder:
		said = l.seen.holder
		l.opts.Log.Info("standing by", "holder", l.seen.holder)
	}
	return said
}

// keep renews until ctx ends. It returns ErrLost with its reason when somebody else has the lease, or when renewing did
// not succeed for two thirds of the duration: what is under way then has the last third to end.
func (l *Lease) keep(ctx context.Context) error {
	pause := l.opts.Duration / 3
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		deadline := l.renewed.Add(l.opts.Duration * 2 / 3)
		try, cancel := context.WithDeadline(ctx, deadline)
		held, err := l.take(try)
		cancel()
		switch {
		case held:
			pause = l.opts.Duration / 3
		case ctx.Err() != nil:
			return nil
		case err == nil && l.seen.holder == l.opts.Identity:
			return fmt.Errorf("%w: another process has the same identity %s; each needs its own", ErrLost, l.opts.Identity)
		case err == nil:
			return fmt.Errorf("%w: %s holds it", ErrLost, l.seen.holder)
		case time.Until(deadline) <= 0:
			return fmt.Errorf("%w: it could not be renewed in time: %v", ErrLost, err) //nolint:errorlint // a part of the reason, not a kind to act on
		default:
			l.opts.Log.Warn("lease not renewed", "error", err, "given_up_in", time.Until(deadline).Round(time.Millisecond))
			pause = min(l.opts.Duration/15, time.Until(deadline))
		}
	}
}
