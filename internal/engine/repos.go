package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/resolve"
	"github.com/lockstep-cd/lockstep/internal/webhook"
)

// Bounds of how repositories are asked.
const (
	// minAsk is the shortest time between two looks at one repository, whatever asks for them.
	minAsk = time.Second
	// retryAsk is after how long a repository that did not answer is asked again.
	retryAsk = 10 * time.Second
	// askAtOnce bounds the looks under way.
	askAtOnce = 8
)

// repos knows what every repository and chart in use has. One look serves all applications.
type repos struct {
	sources  *Sources
	interval time.Duration
	changed  func(applications []string)
	// shift may answer another revision for what a target revision led to; nil leaves it.
	shift func(repo string, found resolve.Revision) resolve.Revision
	// readers tell which applications a move concerns, and passed hears of those that it does not; without readers it
	// concerns all.
	readers *readers
	passed  func(applications []string)
	log     *slog.Logger
	wake    chan struct{}

	mu    sync.Mutex
	byKey map[string]*repo
	// credentials is when any credentials changed last.
	credentials time.Time
}

// repo is one Git repository, or one chart of a Helm repository or registry.
type repo struct {
	key string

	asking sync.Mutex // one look at a time

	mu       sync.Mutex
	source   located
	refs     resolve.Refs
	versions []string
	err      error
	said     string    // the failure that was logged last
	at       time.Time // of the last look
	asked    bool      // somebody wants a look before it is due
	subs     map[string][]subscription
}

// subscription is one target revision that an application follows, and what it leads to.
type subscription struct {
	source   v1alpha1.ApplicationSource
	revision resolve.Revision
	failed   bool
}

func newRepos(s *Sources, interval time.Duration, changed func([]string), log *slog.Logger) *repos {
	return &repos{sources: s, interval: interval, changed: changed, log: log, wake: make(chan struct{}, 1), byKey: map[string]*repo{}}
}

// located is a source with the project whose credentials and rules hold.
type located struct {
	v1alpha1.ApplicationSource
	project string
}

func repoKey(s v1alpha1.ApplicationSource) string {
	if s.Chart != "" || isOCI(s.RepoURL) {
		return "chart " + s.RepoURL + " " + s.Chart
	}
	return git.Normalize(s.RepoURL)
}

func (r *repos) entry(s located) *repo {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := r.sources.key(s)
	e := r.byKey[key]
	if e == nil {
		e = &repo{key: key, subs: map[string][]subscription{}}
		r.byKey[key] = e
	}
	e.mu.Lock()
	e.source = s
	e.mu.Unlock()
	return e
}

// resolve answers what a source's target revision leads to, and follows it for app from now on. A look that is not older
// than the poll interval serves; fresh asks for one made after since. Without app nothing is followed.
func (r *repos) resolve(ctx context.Context, app string, s located, since time.Time) (resolve.Revision, error) {
	e := r.entry(s)
	if err := r.look(ctx, e, since); err != nil {
		r.nudge() // it is due again sooner than the others
		e.subscribe(app, subscription{source: s.ApplicationSource, failed: true})
		return resolve.Revision{}, err
	}
	rev, err := e.resolve(s.ApplicationSource)
	if err == nil && r.shift != nil {
		rev = r.shift(e.key, rev)
	}
	e.subscribe(app, subscription{source: s.ApplicationSource, revision: rev, failed: err != nil})
	if err != nil {
		return rev, fmt.Errorf("repository %s: %w", s.RepoURL, err)
	}
	return rev, nil
}

// look asks the repository unless it was asked after since.
func (r *repos) look(ctx context.Context, e *repo, since time.Time) error {
	e.asking.Lock()
	defer e.asking.Unlock()
	e.mu.Lock()
	known, err, source := !e.at.IsZero() && e.at.After(since), e.err, e.source
	e.mu.Unlock()
	if known {
		return err
	}
	started := time.Now()
	refs, versions, err := r.sources.ask(ctx, source)
	if err != nil && ctx.Err() != nil {
		return err // our own end says nothing about the repository
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at, e.err = started, err
	if err == nil {
		e.refs, e.versions, e.said = refs, versions, ""
	}
	return err
}

func (e *repo) resolve(s v1alpha1.ApplicationSource) (resolve.Revision, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Chart != "" || isOCI(s.RepoURL) {
		v, err := resolve.Version(e.versions, s.TargetRevision)
		return resolve.Revision{Commit: v, How: resolve.Range}, err
	}
	return resolve.Git(e.refs, s.TargetRevision, s.TagPrefix)
}

func (e *repo) subscribe(app string, s subscription) {
	if app == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.subs[app]
	for i := range list {
		if list[i].source.TargetRevision == s.source.TargetRevision && list[i].source.TagPrefix == s.source.TagPrefix {
			list[i] = s
			return
		}
	}
	e.subs[app] = append(list, s)
}

func (r *repos) unsubscribe(app string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, e := range r.byKey {
		e.mu.Lock()
		delete(e.subs, app)
		unused := len(e.subs) == 0
		e.mu.Unlock()
		if unused {
			delete(r.byKey, key)
		}
	}
}

// push asks for a look at the repositories that an event concerns; it answers how many applications follow them.
func (r *repos) push(ev webhook.Event) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	concerned := 0
	for _, e := range r.byKey {
		e.mu.Lock()
		for _, list := range e.subs {
			for _, s := range list {
				if webhook.Affects(ev, s.source.RepoURL, s.source.TargetRevision) {
					e.asked = true
					concerned++
				}
			}
		}
		e.mu.Unlock()
	}
	r.nudge()
	return concerned
}

func (r *repos) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run looks at every repository when it is due, until ctx ends.
func (r *repos) run(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	defer func() { _ = group.Wait() }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		next := r.interval
		for _, e := range r.all() {
			wait, due := e.due(r.interval)
			if due {
				group.Go(func() error { r.refresh(ctx, e); return nil })
				wait = minAsk
			}
			next = min(next, wait)
		}
		timer.Reset(next)
	}
}

func (r *repos) all() []*repo {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*repo, 0, len(r.byKey))
	for _, e := range r.byKey {
		list = append(list, e)
	}
	return list
}

// due tells whether it is time for a look, else how long that takes.
func (e *repo) due(interval time.Duration) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		interval = min(interval, retryAsk)
	}
	if e.asked {
		interval = minAsk
	}
	wait := interval - time.Since(e.at)
	if e.at.IsZero() {
		return interval, false // the first application that resolves it looks
	}
	return max(wait, 10*time.Millisecond), wait <= 0
}

// refresh looks and wakes the applications for which something is different now.
func (r *repos) refresh(ctx context.Context, e *repo) {
	e.mu.Lock()
	since := e.at
	wasAsked := e.asked
	e.asked = false
	e.mu.Unlock()
	if err := r.look(ctx, e, since); err != nil {
		e.say(r.log, err)
		if wasAsked && ctx.Err() == nil {
			e.mu.Lock()
			e.asked = errors.Is(err, context.DeadlineExceeded)
			e.mu.Unlock()
		}
	}
	if woken := r.concerned(ctx, e, e.moved()); len(woken) > 0 {
		r.changed(woken)
	}
	r.nudge()
}

// say logs a failure once, not with every look that finds the same.
func (e *repo) say(log *slog.Logger, err error) {
	e.mu.Lock()
	again := e.said == err.Error()
	e.said = err.Error()
	e.mu.Unlock()
	if !again {
		log.Warn("repository can't be read", "repository", e.key, "error", err)
	}
}
