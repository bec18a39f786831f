package engine

import (
	"context"
	"sync"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/repository"
)

// allowing says why a submodule's URL may not be used; nil when it may.
type allowing func(url string) error

// modules answers for the submodules of a repository; nil leaves them out.
func (s *Sources) modules(of repository.Entry, project string, may allowing) git.Modules {
	if s.NoSubmodules || of.NoSubmodules || may == nil {
		return nil
	}
	return func(ctx context.Context, url string) (git.Repo, error) {
		if err := may(url); err != nil {
			return git.Repo{}, err
		}
		entry, err := s.entry(ctx, located{ApplicationSource: v1alpha1.ApplicationSource{RepoURL: url}, project: project})
		return s.Repositories.Git(entry), err
	}
}

// laysIn tells what the repositories of the sources are set to lay into their trees: without submodules, and with Git LFS.
func (s *Sources) laysIn(r request) []bool {
	list := []bool{s.NoSubmodules}
	for _, source := range r.sources {
		e := s.Repositories.Find(source.RepoURL, projectOf(r.app))
		list = append(list, e.NoSubmodules, e.LFS)
	}
	return list
}

// moduleURLs are those of the submodules that were asked for. The project's rules for them are an input.
type moduleURLs struct {
	rules project.Rules
	mu    sync.Mutex
	used  []fetched
}

func (m *moduleURLs) may(url string) error {
	if err := m.rules.Source(url); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = append(m.used, fetched{Locator: job.Locator{Kind: job.LocateGit, URL: url}})
	return nil
}

func (m *moduleURLs) all() []fetched {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
