package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/usage"
)

// idle does nothing for a while and looks at what Lockstep does meanwhile.
func (r *running) idle(ctx context.Context) ([]report.Measure, error) {
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	r.say("do nothing for %s", r.IdleFor)
	writes, err := kube.CountWrites(ctx, r.cluster.client)
	if err != nil {
		return nil, err
	}
	asked := r.git.Counts().Discoveries
	seen, err := r.observer.Counts(ctx)
	if err != nil {
		return nil, err
	}
	cpu, err := r.sampler.CPU()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(r.IdleFor):
	}
	after, err := r.sampler.CPU()
	if err != nil {
		return nil, err
	}
	share := 100 * (after - cpu).Seconds() / time.Since(began).Seconds()
	now, err := r.observer.Counts(ctx)
	if err != nil {
		return nil, err
	}
	wrote, err := kube.CountWrites(ctx, r.cluster.client)
	if err != nil {
		return nil, err
	}
	wrote = wrote.Minus(writes)
	m := report.Measure{Name: fmt.Sprintf("idle %s: writes", r.IdleFor), Value: new(float64(wrote.Total())), Later: &report.Target{}}
	if wrote.Total() > 0 {
		m.Note = wrote.String()
	}
	r.note("memory at rest after the idle time: %d MB", r.sampler.Last()>>20)
	return []report.Measure{
		{Name: fmt.Sprintf("idle %s: CPU of a core", r.IdleFor), Unit: "%", Value: new(share), Later: &report.Target{Max: 1, Below: true}},
		m,
		{
			Name:  fmt.Sprintf("idle %s: changes seen", r.IdleFor),
			Value: new(float64(now.Objects + now.Applications - seen.Objects - seen.Applications)), Later: &report.Target{},
		},
		{
			Name:  fmt.Sprintf("idle %s: looks at the repository", r.IdleFor),
			Value: new(float64(r.git.Counts().Discoveries - asked)), Later: &report.Target{Max: 1},
		},
	}, nil
}

// knownLimit is how long Lockstep may take after a restart until it knows everything.
const knownLimit = 2 * time.Minute

// restart stops Lockstep and starts it again on its data.
func (r *running) restart(ctx context.Context) ([]report.Measure, error) {
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	r.say("restart lockstep")
	if err := r.lockstep.Stop(); err != nil {
		return nil, err
	}
	before, err := kube.CountWrites(ctx, r.cluster.client)
	if err != nil {
		return nil, err
	}
	next, err := r.startLockstep(ctx, r.cluster, r.dir)
	if err != nil {
		return nil, err
	}
	r.lockstep = next
	r.sampler.Stop()
	r.sampler = usage.Watch(ctx, next.Pid())
	ready := time.Since(next.Began)
	if err := until(ctx, pace{100 * time.Millisecond, knownLimit}, r.allKnown); err != nil {
		return nil, fmt.Errorf("lockstep: after the restart: %w", err)
	}
	known := time.Since(next.Began)
	// What was put off is waited for, too: a write that comes late is a write.
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	renders, err := next.rendered(ctx)
	if err != nil {
		return nil, err
	}
	after, err := kube.CountWrites(ctx, r.cluster.client)
	if err != nil {
		return nil, err
	}
	wrote := after.Minus(before)
	writes := report.Measure{Name: "restart: writes", Value: new(float64(wrote.Total())), Later: &report.Target{}}
	if wrote.Total() > 0 {
		writes.Note = wrote.String()
	}
	return []report.Measure{
		{
			Name: "restart → all known", Unit: "s", Value: new(known.Seconds()), Later: &report.Target{Max: 10, Below: true},
			Note: fmt.Sprintf("ready after %.1f s; known means that every application was looked at and none waits", ready.Seconds()),
		},
		{Name: "restart: renders", Value: new(renders), Later: &report.Target{}},
		writes,
	}, nil
}

// allKnown tells whether Lockstep has looked at every application since its start and has none left to look at.
func (r *running) allKnown(ctx context.Context) error {
	v, err := r.lockstep.numbers(ctx, metricLooks, metricQueue, metricAppsKnown)
	if err != nil {
		return err
	}
	n := float64(r.Spec.Applications)
	if v[metricLooks] < n || v[metricAppsKnown] < n || v[metricQueue] > 0 {
		return fmt.Errorf("%.0f looks at %.0f applications, %.0f waiting", v[metricLooks], v[metricAppsKnown], v[metricQueue])
	}
	return nil
}
