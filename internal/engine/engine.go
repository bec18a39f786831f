// Package engine owns the loop: it passes the values of the chain from link to link (resolve → render → compare → plan →
// apply → assess) for each application that something woke, and writes the application's status. Everything that wakes an
// application is listed in wake.go (DESIGN.md §4).
//
// It is the only package that joins the links; it knows no HTTP and no command line.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/evidence"
	"github.com/lockstep-cd/lockstep/internal/pressure"
	"github.com/lockstep-cd/lockstep/internal/queue"
	"github.com/lockstep-cd/lockstep/internal/record"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/rendercache"
	"github.com/lockstep-cd/lockstep/internal/repository"
)

// Options of an engine.
type Options struct {
	// REST reaches the cluster that holds the applications, which is also the destination in-cluster.
	REST *rest.Config
	// Namespace that applications, projects and Secrets live in.
	Namespace string
	// Applications selects those that are kept; nil selects all. Others are not touched, but what they declare counts.
	Applications labels.Selector
	// Sources opens repositories and charts.
	Sources *Sources
	// Render renders each source, apart from this process: sources are not trusted.
	Render Renderer
	// Version of what Render does. What another version has rendered is rendered again, one application at a time.
	Version string
	// Cache keeps what was rendered; nil keeps nothing over a restart.
	Cache *rendercache.Store
	// Repositories are the credentials by Secret; the engine fills it.
	Repositories *repository.Set
	// Records keep the proofs of what was applied.
	Records *record.Store
	// Key makes hashes of desired objects unguessable; 32 bytes, the same after a restart.
	Key []byte
	// Workers is the number of applications worked on at a time, and one more that somebody has asked for something; default 16.
	Workers int
	// PollInterval is how often each repository is asked for its refs; default 2 minutes.
	PollInterval time.Duration
	// WaitNote is after how long a sync that waits says since when; default 15 minutes.
	WaitNote time.Duration
	// Audit is how what is held is checked against the truth.
	Audit AuditOptions
	// SettleAfter is how long the controllers of objects that do not report what they have seen are given to do so, before
	// the next wave; default 2 seconds (DESIGN.md §2.5).
	SettleAfter time.Duration
	// ExplainAfter is how long an application is Progressing before it is looked for why; in any other state that is not well it
	// takes a tenth of it. 10 s if 0.
	ExplainAfter time.Duration
	// Silence is how long a watch may bring neither event nor bookmark before it is made anew; default 3 minutes.
	Silence time.Duration
	// Metrics count what happens; see NewMetrics.
	Metrics *Metrics
	// Log takes what operators should know.
	Log *slog.Logger
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Engine runs the loop.
type Engine struct {
	opts  Options
	log   *slog.Logger
	queue *queue.Queue
	// pace bounds the requests under way to the cluster.
	pace         *pressure.Limiter
	cluster      *cluster.Cluster
	writer       *apply.Writer
	applications *applications
	projects     *projects
	neighbours   neighbours
	repos        *repos
	events       *events
	owners       *owners
	readers      *readers
	names        *names
	outdated     *outdated
	doubts       *doubts
	schemas      func(*unstructured.Unstructured) error
	sealer       *sealer
	hooksSeen    hooksSeen
	// served is what the cluster's capabilities were when they were looked at last.
	served atomic.Pointer[job.Capabilities]
	whys   *whys
	// closely are the keys of objects whose content is followed, see read.
	closely sync.Map
	// deaf holds the inputs that wake nobody; only tests put some in.
	deaf    sync.Map
	auditor *auditor
	// configuration is what the settings say about live objects.
	configuration atomic.Pointer[configuration]
	// feeds hand changes of applications on to faces.
	feeds feeds
	// follower follows what the control plane's namespace holds.
	follower follower

	mu     sync.Mutex
	states map[string]*state

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New joins the links; nothing runs before Start.
func New(o Options) (*Engine, error) {
	pace := pressure.New(nil)
	o = o.completed(pace)
	e := &Engine{
		opts: o, log: o.Log, states: map[string]*state{}, owners: newOwners(), doubts: newDoubts(),
		readers: newReaders(), names: newNames(), outdated: newOutdated(), pace: pace,
	}
	first, _ := configured(nil, o.Namespace) // nothing is wrong with no settings
	e.configuration.Store(first)
	e.queue = queue.New(queue.Options{Place: e.lane})
	o.Sources.Repositories = o.Repositories
	var err error
	e.follower.dog = cluster.Watchdog{Silence: o.Silence, Renewed: e.onSilence}
	e.cluster, err = cluster.New(cluster.Options{REST: o.REST, Read: e.read, OnChange: e.onLive, Watchdog: e.follower.dog, Log: o.Log})
	if err != nil {
		return nil, err
	}
	if e.writer, err = apply.New(o.REST); err != nil {
		return nil, err
	}
	if e.applications, err = newApplications(o.REST, o.Namespace, e.onApplication, e.onArgoCD); err != nil {
		return nil, err
	}
	if e.projects, err = newProjects(o.REST, o.Namespace, e.onProject); err != nil {
		return nil, err
	}
	e.neighbours = e.newNeighbours()
	e.repos = newRepos(o.Sources, o.PollInterval, e.onRepository, o.Log)
	e.repos.readers, e.repos.passed, e.repos.doubts, e.repos.freed = e.readers, e.onPassed, e.doubts, e.wake
	e.events = newEvents(e.writer, o.Log)
	e.schemas = e.cluster.Check
	if e.sealer, err = newSealer(); err != nil {
		return nil, err
	}
	finder, err := evidence.New(o.REST, e.rules)
	if err != nil {
		return nil, err
	}
	e.whys = &whys{
		gather: finder.Of, after: o.ExplainAfter, log: o.Log, queue: queue.New(queue.Options{}), known: map[string]*why{},
		wake: func(key string) { e.queue.Add(key, queue.Housekeeping) },
	}
	e.auditor, err = newAuditor(e)
	return e, err
}

// Start reads what there is and begins to work. It returns when the first lists of applications and projects are in.
func (e *Engine) Start(ctx context.Context) error {
	ctx, e.cancel = context.WithCancel(ctx)
	e.cluster.Start(ctx)
	// Credentials and projects first: an application must not be judged without them.
	if err := e.watchSecrets(ctx); err != nil {
		return err
	}
	if err := e.projects.start(ctx, &e.follower); err != nil {
		return err
	}
	if err := e.followNeighbours(ctx); err != nil {
		return err
	}
	if err := e.applications.start(ctx, &e.follower); err != nil {
		return err
	}
	e.wg.Go(func() { e.events.run(ctx) })
	e.wg.Go(func() { e.repos.run(ctx) })
	e.wg.Go(func() { e.housekeep(ctx) })
	e.wg.Go(func() { e.watchOver(ctx) })
	e.wg.Go(func() { e.auditor.run(ctx) })
	e.wg.Go(func() { e.whys.run(ctx) })
	for range e.opts.Workers {
		e.wg.Go(func() { e.work(ctx, queue.Housekeeping) })
	}
	// Whatever keeps the others busy, nobody who asks for something waits until one of them is free.
	e.wg.Go(func() { e.work(ctx, queue.People) })
	return nil
}

// Stop ends the loop: what is being worked on ends its current request, nothing new begins. It waits.
func (e *Engine) Stop() {
	if e.cancel == nil {
		return
	}
	e.queue.Close()
	e.whys.queue.Close()
	e.cancel()
	e.wg.Wait()
	e.follower.wg.Wait()
	e.cluster.Stop()
}

// work takes what is as urgent as least from the queue until ctx ends.
func (e *Engine) work(ctx context.Context, least queue.Priority) {
	for {
		key, ok := e.queue.Get(ctx, least)
		if !ok {
			return
		}
		started := e.opts.Now()
		err := e.reconcile(ctx, key)
		e.opts.Metrics.reconciled(e.opts.Now().Sub(started))
		if err != nil && ctx.Err() == nil {
			st := e.state(key)
			st.failures++
			wait := min(time.Second<<min(st.failures, 8), 30*time.Second)
			e.log.Warn("reconcile", "application", key, "error", err, "again_in", wait)
			e.queue.AddAfter(key, queue.Housekeeping, wait)
		}
		e.queue.Done(key)
	}
}

// Queue is the state of the work queue, for metrics and readiness.
func (e *Engine) Queue() queue.State { return e.queue.State() }

// Settled tells that every application known at the start was looked at once.
func (e *Engine) Settled() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	missing := 0
	for _, key := range e.applications.keys() {
		if st := e.states[key]; st == nil || !st.seen.Load() {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d applications were not looked at yet", missing)
	}
	return nil
}

func (e *Engine) state(key string) *state {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.states[key]
	if st == nil {
		st = &state{key: key}
		e.states[key] = st
	}
	return st
}

func (e *Engine) forget(key string) {
	e.mu.Lock()
	st := e.states[key]
	delete(e.states, key)
	e.mu.Unlock()
	if st != nil {
		e.cluster.Unwant(st.wanted)
		for _, k := range st.wanted {
			e.closely.Delete(k)
		}
		e.readers.set(key, nil)
		e.repos.unsubscribe(key)
		e.names.forget(key)
	}
	e.undeclare(key)
	e.renderedAgain(key)
	if e.opts.Cache != nil {
		e.opts.Cache.Drop(key)
	}
	e.queue.Forget(key)
}
