package engine

import (
	"context"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/git"
)

// housekeepingPause is between two roundings-up of what mirrors have to keep.
const housekeepingPause = 10 * time.Minute

// housekeep tells the mirrors which commits are in use or in a history, so that a forced push can't take them away and
// everything else can go.
func (e *Engine) housekeep(ctx context.Context) {
	tick := time.NewTicker(housekeepingPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.Settled() != nil {
			continue // what is not looked at yet may need more
		}
		e.keepCommits(ctx)
	}
}

func (e *Engine) keepCommits(ctx context.Context) {
	commits := map[string][]string{} // by mirror
	repos := map[string]git.Repo{}
	var urls []string
	e.applications.each(func(app *v1alpha1.Application) {
		for _, use := range commitsOf(app) {
			if isChart(use.source) || use.source.RepoURL == "" {
				continue
			}
			key := git.Normalize(use.source.RepoURL)
			if _, known := repos[key]; !known {
				entry := e.opts.Repositories.Find(use.source.RepoURL, projectOf(app))
				repos[key] = e.opts.Repositories.Git(entry)
				urls = append(urls, use.source.RepoURL)
			}
			if use.commit != "" {
				commits[key] = append(commits[key], use.commit)
			}
		}
	})
	for _, r := range e.repos.all() { // bases and components that sources name
		r.mu.Lock()
		if s := r.source; !isChart(s.ApplicationSource) {
			urls = append(urls, s.RepoURL)
		}
		r.mu.Unlock()
	}
	for key, repo := range repos {
		if err := e.opts.Sources.Git.Keep(ctx, repo, commits[key]); err != nil && ctx.Err() == nil {
			e.log.Warn("mirror not tidied up", "repository", key, "error", err)
		}
	}
	if err := e.opts.Sources.Git.Sweep(ctx, urls); err != nil && ctx.Err() == nil {
		e.log.Warn("mirrors not tidied up", "error", err)
	}
}

// use is a commit of a source that must stay readable.
type use struct {
	source v1alpha1.ApplicationSource
	commit string
}

func commitsOf(app *v1alpha1.Application) []use {
	var uses []use
	add := func(sources []v1alpha1.ApplicationSource, revisions []string) {
		for i, s := range sources {
			u := use{source: s}
			if i < len(revisions) {
				u.commit = revisions[i]
			}
			uses = append(uses, u)
		}
	}
	one := func(source v1alpha1.ApplicationSource, sources []v1alpha1.ApplicationSource, revision string, revisions []string) {
		if len(sources) > 0 {
			add(sources, revisions)
			return
		}
		add([]v1alpha1.ApplicationSource{source}, []string{revision})
	}
	s := app.Status
	one(first(effective(app.Spec)), app.Spec.Sources, s.Sync.Revision, s.Sync.Revisions)
	for _, h := range s.History {
		one(h.Source, h.Sources, h.Revision, h.Revisions)
	}
	if s.OperationState != nil && s.OperationState.SyncResult != nil {
		r := s.OperationState.SyncResult
		one(r.Source, r.Sources, r.Revision, r.Revisions)
	}
	return uses
}
