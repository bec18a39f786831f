package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-cd/lockstep/bench/floor"
	"github.com/lockstep-cd/lockstep/bench/observe"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/usage"
)

// running is a Lockstep in step, with all that the other measures need.
type running struct {
	*trial
	cluster  *cluster
	observer *observe.Remote
	lockstep *lockstep
	sampler  *usage.Sampler
	// dir has Lockstep's data.
	dir string
}

// lockstepRound measures Lockstep on a cluster of its own, and takes the other measures when all is set. The outcome is
// nil when it has not come into step.
func (t *trial) lockstepRound(ctx context.Context, n int, all bool) (more []report.Measure, o *outcome, err error) {
	r := &running{trial: t}
	if r.dir, err = t.dir(fmt.Sprintf("lockstep-%d", n)); err != nil {
		return nil, nil, err
	}
	if r.cluster, err = t.freshCluster(ctx, fmt.Sprintf("lockstep-%d", n)); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.cluster.Stop()) }()
	if r.observer, err = observe.Start(ctx, observe.Config{Kubeconfig: r.cluster.Kubeconfig, Spec: t.Spec}); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.observer.Stop()) }()
	if r.lockstep, err = t.startLockstep(ctx, r.cluster, r.dir); err != nil {
		return nil, nil, err
	}
	// The restart puts another Lockstep here, so the last one is stopped.
	defer func() { err = errors.Join(err, r.lockstep.Stop()) }()
	r.sampler = usage.Watch(ctx, r.lockstep.Pid())
	defer func() { r.sampler.Stop() }()

	got, err := r.inStep(ctx)
	if err != nil {
		return nil, nil, err
	}
	t.say("lockstep: %s", got)
	if !all {
		return nil, &got, nil
	}
	return r.more(ctx), &got, nil
}

func (r *running) inStep(ctx context.Context) (outcome, error) {
	creator, err := startWriter(floor.Config{Kubeconfig: r.cluster.Kubeconfig, Spec: r.Spec, CreateOnly: true})
	if err != nil {
		return outcome{}, err
	}
	o, err := r.clock(ctx, setup{cluster: r.cluster, observer: r.observer, writer: creator, sampler: r.sampler})
	return o, errors.Join(err, creator.Stop())
}

// more takes the other measures. One that fails says so in its place and does not keep the next from being taken.
func (r *running) more(ctx context.Context) []report.Measure {
	var measures []report.Measure
	for _, m := range []struct {
		name string
		take func(context.Context) ([]report.Measure, error)
	}{
		{Idle, r.idle}, {Restart, r.restart}, {Heal, r.heal}, {Change, r.change}, {ByHand, r.byHand}, {Storm, r.storm},
	} {
		if !r.wants(m.name) || ctx.Err() != nil {
			continue
		}
		taken, err := m.take(ctx)
		if err != nil {
			taken = append(taken, report.Measure{Name: m.name, Note: err.Error()})
			r.say("%s: %v", m.name, err)
		}
		measures = append(measures, taken...)
	}
	return append(measures, r.audit(ctx))
}

// audit is Lockstep's own count of applications that a look from scratch judged differently.
func (r *running) audit(ctx context.Context) report.Measure {
	m := report.Measure{Name: "audit mismatches", Later: &report.Target{}}
	values, err := r.lockstep.numbers(ctx, metricAudit)
	switch v, ok := values[metricAudit]; {
	case err != nil:
		m.Note = err.Error()
	case !ok:
		m.Note = "Lockstep has no metric " + metricAudit
	default:
		m.Value = new(v)
	}
	return m
}

const (
	// quietFor is how long nothing may change before a measure of rest begins, and quietLimit how long that is waited for.
	quietFor   = 5 * time.Second
	quietEvery = 200 * time.Millisecond
	quietLimit = 90 * time.Second
)

// errRestless tells that the cluster goes on changing.
var errRestless = errors.New("the cluster has no rest")

// quiet waits until the cluster has shown no change for a while.
func (r *running) quiet(ctx context.Context) error {
	return r.calm(ctx, quietFor, pace{quietEvery, quietLimit})
}

func (r *running) calm(ctx context.Context, long time.Duration, p pace) error {
	return until(ctx, p, func(ctx context.Context) error {
		c, err := r.observer.Counts(ctx)
		if err == nil && c.Quiet < long {
			err = fmt.Errorf("%w: the last change was %s ago", errRestless, c.Quiet.Round(time.Millisecond))
		}
		return err
	})
}
