package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// AuditOptions say how often one application is looked at from scratch and compared with what is held of it (DESIGN.md §4).
type AuditOptions struct {
	// Interval is the shortest pause between two applications; default 5 s, negative for no audit. It grows with the time
	// that an audit takes, so that audits take at most one part in auditShare of it.
	Interval time.Duration
	// Settle is for how long a difference must stay, with nothing under way, before it counts; default 5 s.
	Settle time.Duration
}

const (
	// auditShare bounds the audit: half a percent of one core.
	auditShare = 200
	// auditPatience bounds, in multiples of Settle, how long one application is watched until a difference goes or stays.
	auditPatience = 6
)

// Mismatch is a difference between what was held of an application and what a look from scratch found: an input has changed
// and nobody was woken.
type Mismatch struct {
	// Application is its key, namespace/name.
	Application string
	// Input is what was missed.
	Input Input
	// Object is what it shows at: a live object, a file, a source; empty for the application itself.
	Object string
	// Held and Found are the two sides, in words without values.
	Held, Found string
}

func (m Mismatch) String() string {
	return fmt.Sprintf("application %s: %s %s: held %s, found %s", m.Application, m.Input, m.Object, m.Held, m.Found)
}

// auditor looks at one application at a time, from scratch: nothing rendered, compared or listed before is taken over. It
// writes nothing.
type auditor struct {
	engine *Engine
	opts   AuditOptions
	client dynamic.Interface
	// kinds is a connection of its own, that knows nothing of what the loop has learned of the cluster.
	kinds   *cluster.Cluster
	metrics *Metrics
	last    string // key of the application that was audited last
}

func newAuditor(e *Engine) (*auditor, error) {
	o := e.opts.Audit
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	client, err := dynamic.NewForConfig(e.opts.REST)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", e.opts.REST.Host, err)
	}
	kinds, err := cluster.New(cluster.Options{REST: e.opts.REST, Read: readByDefault, OnChange: func(cluster.Change) {}, Log: e.log})
	// Renderings of an audit are no renderings of the loop: whoever counts these must not see ours.
	return &auditor{engine: e, opts: o, client: client, kinds: kinds, metrics: NewMetrics(prometheus.NewRegistry())}, err
}

// run audits one application after the other until ctx ends, and only while no other work waits.
func (a *auditor) run(ctx context.Context) {
	if a.opts.Interval < 0 {
		return
	}
	timer := time.NewTimer(a.opts.Interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		started := time.Now()
		if q := a.engine.Queue(); q.Waiting+q.Active == 0 && a.engine.Settled() == nil {
			if key := a.next(); key != "" {
				a.audit(ctx, key)
			}
		}
		timer.Reset(max(a.opts.Interval, time.Since(started)*auditShare))
	}
}

// next is the application whose turn it is: the one after the last by name, so that all have theirs.
func (a *auditor) next() string {
	next, smallest := "", ""
	for _, key := range a.engine.applications.keys() {
		if smallest == "" || key < smallest {
			smallest = key
		}
		if key > a.last && (next == "" || key < next) {
			next = key
		}
	}
	if next == "" {
		next = smallest
	}
	a.last = next
	return next
}

// Audit looks at every application once, from scratch, and returns how many it could judge and the differences that stayed.
// An application that is worked on all the time, or whose source or cluster does not answer, is not judged.
func (e *Engine) Audit(ctx context.Context) (judged int, found []Mismatch) {
	keys := e.applications.keys()
	slices.Sort(keys)
	for _, key := range keys {
		list, ok := e.auditor.audit(ctx, key)
		if ok {
			judged++
		}
		found = append(found, list...)
	}
	return judged, found
}

// audit judges one application; ok is false when there was no quiet moment to do it in. What differs is counted, logged and
// mended.
func (a *auditor) audit(ctx context.Context, key string) (list []Mismatch, ok bool) {
	list, ok = a.settled(ctx, key)
	if !ok {
		return nil, false
	}
	e := a.engine
	e.opts.Metrics.audits.Inc()
	for _, m := range list {
		e.opts.Metrics.mismatches.WithLabelValues(string(m.Input)).Inc()
		if m.Input == InputSettings {
			if now, err := a.configuration(ctx); err == nil {
				e.reconfigure(now) //nolint:contextcheck // a watch serves all and outlives the one who asked first
			}
		}
		e.log.Error("audit: a change was missed", "application", m.Application, "input", m.Input, "object", m.Object, "held", m.Held, "found", m.Found)
	}
	if len(list) > 0 {
		e.state(key).distrusted.Store(true)
		e.repos.retry()
		e.queue.Add(key, queue.Housekeeping)
	}
	return list, true
}

// errInFlight says that something about the application is under way: what differs now may be gone in a moment.
var errInFlight = errors.New("is being worked on")

// settled compares until there is no difference, or the same one has stayed for long enough while nobody worked on the
// application: a watch event may be on its way.
func (a *auditor) settled(ctx context.Context, key string) ([]Mismatch, bool) {
	deadline := time.Now().Add(auditPatience * a.opts.Settle)
	var since time.Time
	var last []Mismatch
	looks := -1
	for pause := a.opts.Settle / 50; ; pause = min(2*pause, a.opts.Settle/4) {
		list, now, err := a.compare(ctx, key)
		switch {
		case ctx.Err() != nil:
			return nil, false
		case err == nil && len(list) == 0:
			return nil, true
		case err == nil && now == looks && slices.Equal(list, last):
			if time.Since(since) >= a.opts.Settle {
				return list, true
			}
		case err == nil:
			since, last, looks = time.Now(), list, now
		case !errors.Is(err, errInFlight):
			a.engine.log.Debug("audit: not judged", "application", key, "reason", err)
			return nil, false
		default:
			looks = -1
		}
		if time.Now().After(deadline) {
			return nil, false
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-time.After(pause):
		}
	}
}
