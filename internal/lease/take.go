package lease

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// processAnnotation holds which process of an identity has the lease. Without it two processes that were given one name by
// mistake would both believe that they hold it.
const processAnnotation = "lockstep.dev/process"

// giveBackWithin bounds the handing back of the lease, which is the last thing a process does.
const giveBackWithin = 2 * time.Second

// take tries once to get or renew the lease. It returns false without an error when another process holds it; l.seen says
// which.
func (l *Lease) take(ctx context.Context) (bool, error) {
	now := time.Now()
	found, err := l.client.Get(ctx, l.opts.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.opts.Name}}
		l.fill(fresh, now)
		if _, err = l.client.Create(ctx, fresh, metav1.CreateOptions{}); err == nil {
			l.renewed = now
		}
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	l.look(found)
	if !l.free(found) {
		return false, nil
	}
	l.fill(found, now)
	if _, err = l.client.Update(ctx, found, metav1.UpdateOptions{}); err == nil { // refused when somebody else was quicker
		l.renewed = now
	}
	return err == nil, err
}

// look notes who holds the lease, and when we first saw that renewal.
func (l *Lease) look(found *coordinationv1.Lease) {
	holder, process, renewed := deref(found.Spec.HolderIdentity), found.Annotations[processAnnotation], ""
	if found.Spec.RenewTime != nil {
		renewed = found.Spec.RenewTime.String()
	}
	if s := &l.seen; holder != s.holder || process != s.process || renewed != s.renewed {
		s.holder, s.process, s.renewed, s.at = holder, process, renewed, time.Now()
	}
}

// free tells whether the lease may be written by this process: it is nobody's or run out; or it is ours; or it has our name
// and we start, for then the process that had it is no more. One that already held it and finds another process under its
// own name has been followed by it.
func (l *Lease) free(found *coordinationv1.Lease) bool {
	if l.seen.holder == l.opts.Identity {
		return l.seen.process == l.process || l.renewed.IsZero()
	}
	return l.seen.holder == "" || time.Since(l.seen.at) >= l.duration(found)
}

// duration is the one that the holder promised to renew within.
func (l *Lease) duration(found *coordinationv1.Lease) time.Duration {
	if found.Spec.LeaseDurationSeconds != nil {
		return time.Duration(*found.Spec.LeaseDurationSeconds) * time.Second
	}
	return l.opts.Duration
}

func (l *Lease) fill(lease *coordinationv1.Lease, at time.Time) {
	now := metav1.NewMicroTime(at)
	if deref(lease.Spec.HolderIdentity) != l.opts.Identity || lease.Annotations[processAnnotation] != l.process {
		transitions := int32(0)
		if lease.Spec.LeaseTransitions != nil {
			transitions = *lease.Spec.LeaseTransitions + 1
		}
		lease.Spec.LeaseTransitions, lease.Spec.AcquireTime = &transitions, &now
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, processAnnotation, l.process)
	seconds := int32(l.opts.Duration / time.Second)
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &l.opts.Identity, &now, &seconds
}

// give hands the lease back, so that a successor need not wait.
func (l *Lease) give(ctx context.Context) {
	// The caller's context has ended by now; handing back is done within its own bound.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
	defer cancel()
	found, err := l.client.Get(ctx, l.opts.Name, metav1.GetOptions{})
	if err == nil {
		if deref(found.Spec.HolderIdentity) != l.opts.Identity || found.Annotations[processAnnotation] != l.process {
			return
		}
		nobody := ""
		found.Spec.HolderIdentity = &nobody
		_, err = l.client.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil {
		l.opts.Log.Warn("lease not given back; it runs out by itself", "error", err)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
