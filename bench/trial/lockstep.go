package trial

import (
	"context"
	"fmt"

	"github.com/lockstep-cd/lockstep/bench/prom"
	"github.com/lockstep-cd/lockstep/test/local"
)

// lockstep is a running `lockstep serve`.
type lockstep struct{ *local.Lockstep }

// startLockstep starts Lockstep on the cluster with its data in dir, and waits until it is ready.
func (t *trial) startLockstep(ctx context.Context, c *cluster, dir string) (*lockstep, error) {
	l, err := local.StartLockstep(ctx, local.LockstepOptions{
		Binary: t.Lockstep, Kubeconfig: c.Kubeconfig, Namespace: t.Spec.ControlNamespace, Dir: dir,
	})
	return &lockstep{l}, err
}

// The metrics of Lockstep that measures are made of.
const (
	metricRenders   = "lockstep_renders_total"
	metricLooks     = "lockstep_reconcile_seconds_count"
	metricQueue     = "lockstep_queue_length"
	metricAudit     = "lockstep_audit_mismatch_total"
	metricStatus    = "lockstep_status_writes_total"
	metricAppsKnown = "argocd_app_info"
)

// numbers reads metrics of Lockstep; one that it does not show is not in the result.
func (l *lockstep) numbers(ctx context.Context, names ...string) (map[string]float64, error) {
	text, err := l.Get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("lockstep: metrics: %w", err)
	}
	values := map[string]float64{}
	for _, name := range names {
		v, ok, err := prom.Sum(text, name)
		if err != nil {
			return nil, fmt.Errorf("lockstep: %w", err)
		}
		if ok {
			values[name] = v
		}
	}
	return values, nil
}

// rendered is the number of renderings since the start. A counter with labels is shown from its first increment on, so
// one that is not there is 0 when Lockstep shows its other counters.
func (l *lockstep) rendered(ctx context.Context) (float64, error) {
	v, err := l.numbers(ctx, metricRenders, metricStatus)
	if err != nil {
		return 0, err
	}
	if _, ok := v[metricStatus]; !ok {
		return 0, fmt.Errorf("lockstep: metrics: neither %s nor %s is there", metricRenders, metricStatus)
	}
	return v[metricRenders], nil
}
