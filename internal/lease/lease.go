// Package lease owns the question which process is the active one (DESIGN.md §3): one holder of the Lease works, others
// stand by. It knows nothing of what the holder does.
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// ErrLost says that another process holds the lease now: whatever this one still does must end.
var ErrLost = errors.New("the lease was lost to another process, or could not be renewed in time")

// Options of a lease.
type Options struct {
	REST *rest.Config
	// Namespace and Name of the Lease.
	Namespace, Name string
	// Identity is the stable name of this process: one that restarts under its old name takes its lease at once.
	Identity string
	// Duration after which a holder that does not renew has lost it; default 15 s. It is renewed every third of it.
	Duration time.Duration
	Log      *slog.Logger
}

// Lease is one process's part in it.
type Lease struct {
	opts   Options
	client coordination.LeaseInterface
	held   atomic.Bool
	// seen is the holder's last renewal as we saw it, by our own clock: clocks of two machines are never compared.
	seen struct {
		holder, renewed string
		at              time.Time
	}
}

// New prepares a lease; nothing is asked before Hold.
func New(o Options) (*Lease, error) {
	if o.Identity == "" {
		return nil, errors.New("lease: an identity is missing")
	}
	if o.Duration == 0 {
		o.Duration = 15 * time.Second
	}
	client, err := coordination.NewForConfig(o.REST)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return &Lease{opts: o, client: client.Leases(o.Namespace)}, nil
}

// Held tells whether this process is the active one.
func (l *Lease) Held() bool { return l.held.Load() }

// Hold waits for the lease, then runs work while it is held; the context of work ends when the lease is lost. It returns
// what work returned, ErrLost when the lease was lost, or nil when ctx ended before the lease was had. The lease is given
// back after work has ended: a successor never writes beside us.
func (l *Lease) Hold(ctx context.Context, work func(context.Context) error) error {
	if !l.wait(ctx) {
		return nil
	}
	l.held.Store(true)
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		l.keep(working, stop)
	}()
	err := work(working)
	lost := errors.Is(context.Cause(working), ErrLost)
	stop(nil)
	<-kept
	l.held.Store(false)
	if lost {
		return errors.Join(ErrLost, err)
	}
	l.give(ctx)
	return err
}

// wait returns true when the lease is ours, false when ctx ends.
func (l *Lease) wait(ctx context.Context) bool {
	tick := time.NewTicker(l.opts.Duration / 5)
	defer tick.Stop()
	said := ""
	for {
		ok, err := l.take(ctx)
		if ok {
			return true
		}
		state := l.seen.holder
		if err != nil {
			state = err.Error()
		}
		if state != said && ctx.Err() == nil {
			said = state
			l.opts.Log.Info("standing by for the lease", "holder", l.seen.holder, "error", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// take tries once to get or renew the lease.
func (l *Lease) take(ctx context.Context) (bool, error) {
	now := metav1.NewMicroTime(time.Now())
	found, err := l.client.Get(ctx, l.opts.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.opts.Name}}
		l.fill(fresh, now)
		_, err = l.client.Create(ctx, fresh, metav1.CreateOptions{})
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	holder, renewed := "", ""
	if found.Spec.HolderIdentity != nil {
		holder = *found.Spec.HolderIdentity
	}
	if found.Spec.RenewTime != nil {
		renewed = found.Spec.RenewTime.String()
	}
	if holder != l.seen.holder || renewed != l.seen.renewed {
		l.seen.holder, l.seen.renewed, l.seen.at = holder, renewed, time.Now()
	}
	if holder != "" && holder != l.opts.Identity && time.Since(l.seen.at) < l.duration(found) {
		return false, nil
	}
	l.fill(found, now)
	_, err = l.client.Update(ctx, found, metav1.UpdateOptions{}) // refused when somebody else was quicker
	return err == nil, err
}

func (l *Lease) duration(found *coordinationv1.Lease) time.Duration {
	if found.Spec.LeaseDurationSeconds != nil {
		return time.Duration(*found.Spec.LeaseDurationSeconds) * time.Second
	}
	return l.opts.Duration
}

func (l *Lease) fill(lease *coordinationv1.Lease, now metav1.MicroTime) {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != l.opts.Identity {
		transitions := int32(1)
		if lease.Spec.LeaseTransitions != nil {
			transitions += *lease.Spec.LeaseTransitions
		}
		lease.Spec.LeaseTransitions, lease.Spec.AcquireTime = &transitions, &now
	}
	seconds := int32(max(l.opts.Duration/time.Second, 1))
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &l.opts.Identity, &now, &seconds
}

// keep renews until ctx ends; it ends work when that did not succeed for two thirds of the duration, or when somebody
// else holds the lease.
func (l *Lease) keep(ctx context.Context, lose context.CancelCauseFunc) {
	tick := time.NewTicker(l.opts.Duration / 3)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		try, cancel := context.WithTimeout(ctx, l.opts.Duration/3)
		ok, err := l.take(try)
		cancel()
		switch {
		case ok:
			last = time.Now()
		case ctx.Err() != nil:
			return
		case err == nil, time.Since(last) > l.opts.Duration*2/3:
			l.opts.Log.Error("lease lost", "holder", l.seen.holder, "error", err)
			lose(ErrLost)
			return
		}
	}
}

// give hands the lease back, so that a successor need not wait.
func (l *Lease) give(ctx context.Context) {
	// The caller's context has ended by now; handing back is the last thing done, within its own bound.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	found, err := l.client.Get(ctx, l.opts.Name, metav1.GetOptions{})
	if err != nil || found.Spec.HolderIdentity == nil || *found.Spec.HolderIdentity != l.opts.Identity {
		return
	}
	nobody := ""
	found.Spec.HolderIdentity = &nobody
	if _, err := l.client.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
		l.opts.Log.Warn("lease not given back; it runs out by itself", "error", err)
	}
}
