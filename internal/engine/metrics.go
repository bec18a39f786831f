package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/webhook"
)

// Metrics count what the engine does.
type Metrics struct {
	renders      *prometheus.CounterVec
	renderTime   prometheus.Histogram
	notKept      prometheus.Counter
	passed       prometheus.Counter
	reconcile    prometheus.Histogram
	applied      prometheus.Counter
	pruned       prometheus.Counter
	statusWrites prometheus.Counter
	syncs        *prometheus.CounterVec
	audits       prometheus.Counter
	mismatches   *prometheus.CounterVec
	renewed      prometheus.Counter
	overdue      prometheus.Counter
	unreached    prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		renders: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lockstep_renders_total", Help: "Renderings made, by result."}, []string{"result"}),
		renderTime: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "lockstep_render_seconds", Help: "Time of one rendering.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}),
		reconcile: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "lockstep_reconcile_seconds", Help: "Time of one look at an application.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}),
		notKept:      counter("lockstep_rendering_cache_errors_total", "Renderings that could not be kept on disk."),
		passed:       counter("lockstep_commits_passed_total", "Commits that did not concern an application, counted for each."),
		applied:      counter("lockstep_objects_applied_total", "Objects applied."),
		pruned:       counter("lockstep_objects_pruned_total", "Objects pruned."),
		renewed:      counter("lockstep_watches_renewed_total", "Watches made anew since they brought neither event nor bookmark."),
		statusWrites: counter("lockstep_status_writes_total", "Writes of Application objects."),
		syncs:        prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lockstep_syncs_total", Help: "Operations ended, by phase."}, []string{"phase"}),
	}
	m.audits = counter("lockstep_audits_total", "Applications looked at from scratch, to check what is held of them.")
	m.mismatches = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lockstep_audit_mismatch_total",
		Help: "Differences between what was held of an application and a look from scratch, by the input that was missed."}, []string{"input"})
	for _, in := range Inputs() { // so that 0 is to be seen
		m.mismatches.WithLabelValues(string(in))
	}
	r.MustRegister(m.audits, m.mismatches)
	m.watchdogs(r)
	r.MustRegister(m.renders, m.renderTime, m.notKept, m.passed, m.reconcile, m.applied, m.pruned, m.statusWrites, m.syncs, m.renewed)
	return m
}

func (m *Metrics) rendered(d time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.renders.WithLabelValues(result).Inc()
	m.renderTime.Observe(d.Seconds())
}

func (m *Metrics) kept(err error) {
	if err != nil {
		m.notKept.Inc()
	}
}

func (m *Metrics) reconciled(d time.Duration) { m.reconcile.Observe(d.Seconds()) }

func (m *Metrics) synced(phase string) { m.syncs.WithLabelValues(phase).Inc() }

// Collector gives what is known of every application under Argo CD's metric names, and the state of the queue.
func (e *Engine) Collector() prometheus.Collector { return collector{e} }

type collector struct{ engine *Engine }

func appInfo() *prometheus.Desc {
	return prometheus.NewDesc("argocd_app_info", "Information about application.", []string{
		"namespace", "name", "project", "autosync_enabled", "repo", "dest_server", "dest_namespace", "sync_status", "health_status", "operation",
	}, nil)
}

func queueLength() *prometheus.Desc {
	return prometheus.NewDesc("lockstep_queue_length", "Applications waiting for a worker.", nil, nil)
}

func queueOldest() *prometheus.Desc {
	return prometheus.NewDesc("lockstep_queue_oldest_seconds", "How long the oldest application waits for a worker.", nil, nil)
}

func paceDescs() (limit, waiting, narrowed *prometheus.Desc) {
	return prometheus.NewDesc("lockstep_cluster_requests_limit", "Requests to the cluster that may be under way.", nil, nil),
		prometheus.NewDesc("lockstep_cluster_requests_waiting", "Requests to the cluster that wait until others end.", nil, nil),
		prometheus.NewDesc("lockstep_cluster_pushbacks_total", "How often fewer requests were allowed, since the API server had too much to do.", nil, nil)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- appInfo()
	ch <- queueLength()
	ch <- queueOldest()
	limit, waiting, narrowed := paceDescs()
	ch <- limit
	ch <- waiting
	ch <- narrowed
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	info, away := appInfo(), c.engine.awayFrom()
	c.engine.applications.each(func(app *v1alpha1.Application) {
		if away[c.engine.applications.key(app.Name)] {
			return
		}
		auto, operation := "false", ""
		if automated(app).Enabled {
			auto = "true"
		}
		if app.Operation != nil || app.Status.OperationState != nil && !app.Status.OperationState.Phase.Completed() {
			operation = "sync"
		}
		d := app.Spec.Destination
		server := d.Server
		if server == "" {
			server = InClusterServer
		}
		ch <- prometheus.MustNewConstMetric(info, prometheus.GaugeValue, 1, app.Namespace, app.Name, projectOf(app), auto,
			first(effective(app.Spec)).RepoURL, server, d.Namespace, string(app.Status.Sync.Status), string(app.Status.Health.Status), operation)
	})
	s := c.engine.Queue()
	ch <- prometheus.MustNewConstMetric(queueLength(), prometheus.GaugeValue, float64(s.Waiting))
	ch <- prometheus.MustNewConstMetric(queueOldest(), prometheus.GaugeValue, s.Oldest.Seconds())
	p := c.engine.pace.State()
	limit, waiting, narrowed := paceDescs()
	ch <- prometheus.MustNewConstMetric(limit, prometheus.GaugeValue, float64(p.Limit))
	ch <- prometheus.MustNewConstMetric(waiting, prometheus.GaugeValue, float64(p.Waiting))
	ch <- prometheus.MustNewConstMetric(narrowed, prometheus.CounterValue, float64(p.Narrowed))
}

// Push takes in a push event; it answers how many sources of applications it concerns.
func (e *Engine) Push(ev webhook.Event) int {
	if ev.Ignored != "" {
		return 0
	}
	return e.repos.push(ev)
}
