package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-cd/lockstep/internal/queue"
)

// Bounds of the watchdogs (DESIGN.md §4). That of watches is in internal/cluster.
const (
	// overdueAfter is how long an application may wait for a worker.
	overdueAfter = time.Minute
	// unreachedAfter is for how many poll intervals a repository may not be reached.
	unreachedAfter = 5
	// watchdogPause is the longest pause between two looks of the watchdogs.
	watchdogPause = 15 * time.Second
)

// watchdog says what takes longer than it may, once when it begins and once when it is over.
type watchdog struct {
	log *slog.Logger
	// overdue tells that an application waits for too long, away are the repositories that were not reached for too long.
	overdue bool
	away    map[string]bool
	metrics *Metrics
}

// watchOver looks after the queue and the repositories until ctx ends.
func (e *Engine) watchOver(ctx context.Context) {
	dog := &watchdog{log: e.log, away: map[string]bool{}, metrics: e.opts.Metrics}
	tick := time.NewTicker(min(watchdogPause, e.opts.PollInterval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		dog.queue(e.queue.State())
		dog.repositories(e.repos.unreached(time.Now()))
	}
}

// queue says that an application waits for too long, and what the workers are at meanwhile.
func (w *watchdog) queue(s queue.State) {
	overdue := s.Oldest > overdueAfter
	if overdue == w.overdue {
		return
	}
	w.overdue = overdue
	if !overdue {
		w.log.Info("no application waits too long for a worker any more")
		return
	}
	w.metrics.overdue.Inc()
	w.log.Warn("an application waits too long for a worker", "application", s.OldestKey, "waits", s.Oldest.Round(time.Second),
		"waiting", s.Waiting, "active", s.Active, "longest", s.LongestKey, "longest_for", s.Longest.Round(time.Second))
}

// unreached is a repository that was not reached for too long.
type unreached struct {
	key   string
	since time.Time
	err   error
}

// repositories says which repositories are not reached, and which are again.
func (w *watchdog) repositories(list []unreached) {
	now := make(map[string]bool, len(list))
	for _, u := range list {
		now[u.key] = true
		if !w.away[u.key] {
			w.log.Warn("repository not reached for a long time", "repository", u.key, "since", u.since.UTC().Format(time.RFC3339), "error", u.err)
		}
	}
	for key := range w.away {
		if !now[key] {
			w.log.Info("repository reached again, or not used any more", "repository", key)
		}
	}
	w.away = now
	w.metrics.unreached.Set(float64(len(now)))
}

// unreached are the repositories in use that were not reached for several intervals. A look that is due and was lost is
// asked for anew.
func (r *repos) unreached(now time.Time) []unreached {
	var list []unreached
	for _, e := range r.all() {
		e.mu.Lock()
		if len(e.subs) > 0 && now.Sub(e.reached) > unreachedAfter*r.interval {
			list = append(list, unreached{key: e.key, since: e.reached, err: e.err})
			e.asked = e.asked || e.err == nil
		}
		e.mu.Unlock()
	}
	if len(list) > 0 {
		r.nudge()
	}
	return list
}

func (m *Metrics) watchdogs(r prometheus.Registerer) {
	m.overdue = prometheus.NewCounter(prometheus.CounterOpts{Name: "lockstep_queue_overdue_total",
		Help: "How often an application began to wait for a worker for longer than a minute."})
	m.unreached = prometheus.NewGauge(prometheus.GaugeOpts{Name: "lockstep_repositories_unreached",
		Help: "Repositories in use that were not reached for five poll intervals."})
	r.MustRegister(m.overdue, m.unreached)
}
