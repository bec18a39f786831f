package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

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
	// maxRenamed bounds the renamed repositories that are remembered, and maxNamesBefore the former names of each.
	maxRenamed     = 2000
	maxNamesBefore = 20
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
	// doubts hear of every move before anybody else does, and freed of those who need not wait any more; nil doubts nothing.
	doubts *doubts
	freed  func(applications []string)
	log    *slog.Logger
	wake   chan struct{}

	mu    sync.Mutex
	byKey map[string]*repo
	// credentials is when any credentials changed last.
	credentials time.Time
	// formerly are the URLs that a repository had before it was renamed, by the one it has now, both normalized.
	formerly map[string][]string
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
	reached  time.Time // by the last look that was answered; of the first interest before
	asked    bool      // somebody wants a look before it is due
	unread   bool      // the last look found something else, and it is not yet known whom that concerns
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
		e = &repo{key: key, reached: time.Now(), subs: map[string][]subscription{}}
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
	if err != nil {
		return err
	}
	e.refs, e.versions, e.said, e.reached = refs, versions, "", started
	if moving := e.leadingElsewhere().apps(); r.doubts != nil && len(moving) > 0 {
		r.doubts.moves(e.key, moving)
		e.unread = true
		r.nudge()
	}
	return nil
}

func (e *repo) resolve(s v1alpha1.ApplicationSource) (resolve.Revision, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lead(s)
}

// lead is what a source's target revision leads to, with the lock held.
func (e *repo) lead(s v1alpha1.ApplicationSource) (resolve.Revision, error) {
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
	ev = r.renamed(ev)
	concerned := 0
	for _, e := range r.byKey {
		e.mu.Lock()
		for _, list := range e.subs {
			for _, s := range list {
				if webhook.Affects(ev, webhook.Source{RepoURL: s.source.RepoURL, Chart: s.source.Chart, TargetRevision: s.source.TargetRevision}) {
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

// renamed adds to an event the names that its repository had before, and remembers them from an event that tells of a new
// one, with the lock held. What is not remembered, because the process is new or too many were renamed, is found at the next
// interval.
func (r *repos) renamed(ev webhook.Event) webhook.Event {
	if len(ev.Formerly) > 0 {
		if r.formerly == nil || len(r.formerly) >= maxRenamed {
			r.formerly = map[string][]string{}
		}
		known := append(r.namesBefore(ev.Formerly), ev.Formerly...)
		for _, now := range ev.RepoURLs {
			r.formerly[now] = known[:min(len(known), maxNamesBefore)]
		}
	}
	ev.RepoURLs = append(slices.Clone(ev.RepoURLs), r.namesBefore(ev.RepoURLs)...)
	return ev
}

func (r *repos) namesBefore(urls []string) []string {
	var list []string
	for _, u := range urls {
		list = append(list, r.formerly[u]...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (r *repos) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
