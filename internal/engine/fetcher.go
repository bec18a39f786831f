package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// fetcher answers for sources that templates name, within the project's rules, and notes them as inputs.
type fetcher struct {
	chain   *Chain
	request request
	notes   *notes
}

// Fetch implements job.Fetcher.
func (f *fetcher) Fetch(ctx context.Context, l job.Locator) (tree.FS, error) {
	name := ""
	if l.Kind == job.LocateChart && !strings.Contains(l.URL, "://") {
		at, err := f.chain.named(f.request, l.URL)
		if err != nil {
			return nil, err
		}
		name, l.URL = l.URL, at
	}
	if err := f.request.rules.Source(l.URL); err != nil {
		return nil, fmt.Errorf("%s: %w", l, err)
	}
	if l.Kind == job.LocateHTTP {
		t, err := f.chain.Sources.file(ctx, l.URL)
		f.request.note(err)
		return f.notes.fetch(fetched{Locator: l}, t, err)
	}
	source := locate(l, projectOf(f.request.app))
	rev, err := f.chain.repos.resolve(ctx, f.request.key, source, f.request.since)
	if err != nil {
		return nil, err // the next look at that repository wakes the application
	}
	t, full, err := f.chain.Sources.open(ctx, source, rev, func(url string) error {
		err := f.request.rules.Source(url)
		f.notes.module(url, err)
		return err
	})
	f.request.note(err)
	if err == nil {
		err = f.chain.Sources.verified(ctx, f.request.rules, source, full)
	}
	return f.notes.fetch(fetched{Locator: l, Name: name, Found: rev.Commit}, t, err)
}

func locate(l job.Locator, projectName string) located {
	s := v1alpha1.ApplicationSource{RepoURL: l.URL, TargetRevision: l.Revision}
	if l.Kind == job.LocateChart {
		s.Chart, s.TargetRevision = l.Chart, l.Version
	}
	return located{ApplicationSource: s, project: projectName}
}
