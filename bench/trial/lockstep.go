package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lockstep-cd/lockstep/bench/prom"
)

// readyLimit is how long Lockstep may take until it says that it is ready.
const readyLimit = time.Minute

// lockstep is a running `lockstep serve`.
type lockstep struct {
	*process
	base  string
	began time.Time
}

// startLockstep starts Lockstep on the cluster with its data in dir, and waits until it is ready.
func (t *trial) startLockstep(ctx context.Context, c *cluster, dir string) (*lockstep, error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(t.Lockstep, "serve", "--kubeconfig", c.kubeconfig, "--namespace", t.Spec.ControlNamespace,
		"--data-dir", filepath.Join(dir, "data"), "--listen", listen, "--allow-loopback")
	began := time.Now()
	p, err := startProcess("lockstep", cmd, filepath.Join(dir, "lockstep.log"))
	if err != nil {
		return nil, err
	}
	l := &lockstep{process: p, base: "http://" + listen, began: began}
	if err := until(ctx, pace{20 * time.Millisecond, readyLimit}, l.ready); err != nil {
		return nil, errors.Join(fmt.Errorf("lockstep: /readyz: %w", err), p.stop())
	}
	return l, nil
}

// freeAddress finds a port that nobody uses; the next process takes it.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// errEnded stops waiting for a process that is no more.
var errEnded = errors.New("the process has ended")

func (l *lockstep) ready(ctx context.Context) error {
	select {
	case <-l.exited:
		return fmt.Errorf("%w: %s", errEnded, l.lastLines())
	default:
	}
	_, err := l.get(ctx, "/readyz")
	return err
}

func (l *lockstep) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return do(req)
}

func do(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: body: %w", req.URL.Path, err)
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s: status %s: %.200s", req.URL.Path, resp.Status, body)
	}
	return body, nil
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
	text, err := l.get(ctx, "/metrics")
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
