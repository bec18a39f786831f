package engine

import (
	"context"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/queue"
	"github.com/lockstep-cd/lockstep/internal/resolve"
)

// moves is what a look at a repository has found to be different for the applications that follow it.
type moves struct {
	// sure are applications that must look themselves.
	sure map[string]bool
	// steps are moves from a commit to another, with the applications that go along.
	steps map[move][]string
}

// apps are all of them.
func (m moves) apps() map[string]bool {
	all := maps.Clone(m.sure)
	for _, list := range m.steps {
		for _, app := range list {
			all[app] = true
		}
	}
	return all
}

type move struct {
	from string
	to   resolve.Revision
}

// moved lists the applications whose target revision leads elsewhere than when they last asked.
func (e *repo) moved() moves {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leadingElsewhere()
}

// leadingElsewhere is moved with the lock held.
func (e *repo) leadingElsewhere() moves {
	failed := e.err != nil
	found := moves{sure: map[string]bool{}, steps: map[move][]string{}}
	type target struct{ revision, prefix string }
	type answer struct {
		rev resolve.Revision
		err error
	}
	known := map[target]answer{} // ten thousand applications follow the same few
	for app, list := range e.subs {
		for _, s := range list {
			t := target{s.source.TargetRevision, s.source.TagPrefix}
			a, ok := known[t]
			if !ok {
				a.rev, a.err = e.lead(s.source)
				known[t] = a
			}
			switch {
			case failed != s.failed && (failed || a.err == nil):
				found.sure[app] = true
			case failed || a.rev.Commit == s.revision.Commit:
			case s.failed || a.err != nil || s.revision.Commit == "":
				found.sure[app] = true
			default:
				m := move{from: s.revision.Commit, to: a.rev}
				found.steps[m] = append(found.steps[m], app)
			}
		}
	}
	return found
}

// concerned are the applications that have to look themselves: all that moved, but those whose renderings are known to read
// nothing of what is different, which passed are. What is not known, or can not be found out, concerns everybody.
func (r *repos) concerned(ctx context.Context, e *repo, m moves) (woken, passed map[string]bool) {
	woken, passed = m.sure, map[string]bool{}
	for move, apps := range m.steps {
		concerned := apps
		if r.readers != nil && !isChart(e.located().ApplicationSource) {
			if s, err := r.step(ctx, e, move); err == nil {
				concerned = r.readers.advance(s, apps)
				for _, app := range r.pass(e, move, apps, concerned) {
					passed[app] = true
				}
			}
		}
		for _, app := range concerned {
			woken[app] = true
		}
	}
	return woken, passed
}

func (e *repo) located() located {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.source
}

// stepTime bounds the look at what a move changes.
const stepTime = time.Minute

// step finds out what a move changes: one fetch and one difference, whatever the number of applications.
func (r *repos) step(ctx context.Context, e *repo, m move) (step, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	l := e.located()
	entry, err := r.sources.entry(ctx, l)
	if err != nil {
		return step{}, err
	}
	repo := r.sources.Repositories.Git(entry)
	full, err := r.sources.Git.Ensure(ctx, repo, git.Want{Commit: m.to.Commit, Ref: m.to.Ref})
	if err != nil {
		return step{}, r.sources.noted(l, err)
	}
	changes, err := r.sources.Git.Changes(ctx, repo, m.from, full)
	return step{repo: e.key, from: m.from, to: m.to.Commit, full: full, changes: changes}, err
}

// pass notes for the applications that are not concerned that they are at the new commit.
func (r *repos) pass(e *repo, m move, apps, concerned []string) []string {
	if len(concerned) == len(apps) {
		return nil
	}
	out := make(map[string]bool, len(concerned))
	for _, app := range concerned {
		out[app] = true
	}
	var passed []string
	e.mu.Lock()
	for _, app := range apps {
		if out[app] {
			continue
		}
		passed = append(passed, app)
		for i, s := range e.subs[app] {
			if s.revision.Commit == m.from && !s.failed {
				e.subs[app][i].revision = m.to
			}
		}
	}
	e.mu.Unlock()
	r.passed(passed)
	return passed
}

// follows tells whether what app follows of a repository is at commit, as far as it was looked.
func (r *repos) follows(app, repo, commit string) bool {
	r.mu.Lock()
	e := r.byKey[repo]
	r.mu.Unlock()
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.subs[app], func(s subscription) bool { return s.revision.Commit == commit })
}

// register makes known what a rendering has read.
func (e *Engine) register(key string, app *v1alpha1.Application, r *rendering) {
	known := readerOf(app, key, e.opts.Sources.key, r)
	e.readers.set(key, known)
	for _, f := range known.prints {
		// A move between the look at the repository and now was held against the rendering before this one.
		if f.made != "" && !e.repos.follows(key, f.repo, f.made) {
			e.queue.Add(key, queue.Commits)
			return
		}
	}
}

// onPassed hears that commits did not concern applications. The custom resources get to know of the new revisions with
// their next write, or in their turn.
func (e *Engine) onPassed(keys []string) {
	e.opts.Metrics.passed.Add(float64(len(keys)))
	now := e.opts.Now()
	for _, key := range keys {
		if app, _ := e.applications.get(key); app == nil {
			continue
		}
		due := e.state(key).dueAt(now, func() time.Duration { return e.turnOf(key) })
		e.queue.AddAfter(key, queue.Housekeeping, due.Sub(now))
	}
}

// turnOf is how long the write of a revision that moved alone is put off: spread over some time, so that a commit to a
// large repository is no storm of writes.
func (e *Engine) turnOf(key string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash does not fail to be written to
	span := min(housekeepingSpan, time.Duration(e.applications.count())*time.Second/revisionWrites)
	return time.Duration(float64(span) * float64(h.Sum32()) / math.MaxUint32)
}

// Compared are the revisions that an application was compared with last, in the order of its sources; nil when it was not
// yet. They may be ahead of those in its custom resource (DESIGN.md §2.2).
func (e *Engine) Compared(key string) []string { return e.readers.revisions(key) }
