package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-cd/lockstep/bench/observe"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/test/local"
)

// stormVersion is the version of the first pushes of the storm; each round over the applications has the next.
const stormVersion = workload.FirstVersion + 3

// gust is one push of the storm.
type gust struct {
	application, version int
	commit               string
}

// storm pushes many commits to one repository at a high rate, each of one changed file, and announces each. Every
// application must come to the last commit that changes it.
func (r *running) storm(ctx context.Context) ([]report.Measure, error) {
	r.say("prepare %d commits", r.Pushes)
	before, err := r.repo.Resolve("refs/heads/main")
	if err != nil {
		return nil, err
	}
	gusts, err := r.gusts(ctx, before)
	if err != nil {
		return nil, err
	}
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	r.say("push %d commits, one every %s", len(gusts), stormPause)
	fetched := r.git.Counts().Fetches
	began := time.Now()
	answer, err := r.blow(ctx, before, gusts)
	if err != nil {
		return nil, err
	}
	last := time.Now()
	bounded, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	reached, err := r.observer.InStep(bounded)
	if err != nil {
		return nil, fmt.Errorf("after the last push: %w; %s", err, r.observer.Progress().Waiting)
	}
	if err := r.pause(ctx); err != nil { // a fetch that comes late counts
		return nil, err
	}
	fetches := float64(r.git.Counts().Fetches - fetched)
	return []report.Measure{
		{
			Name:  fmt.Sprintf("%d pushes in %.0f s: fetches a second", len(gusts), last.Sub(began).Seconds()),
			Value: new(max(0, fetches-1) / reached.Sub(began).Seconds()), Later: &report.Target{Max: 1},
			Note: fmt.Sprintf("%.0f fetches in %.1f s, the first not counted; every application came to the last commit that changes it",
				fetches, reached.Sub(began).Seconds()),
		},
		{Name: "last of these pushes → in step", Unit: "s", Value: new(max(0, reached.Sub(last).Seconds()))},
		{Name: "slowest webhook answer among them", Unit: "ms", Value: new(float64(answer) / float64(time.Millisecond)), Later: &report.Target{Max: 50, Below: true}},
	}, nil
}

// stormPause is the time from one push to the next: a thousand take ten seconds.
const stormPause = 10 * time.Millisecond

// gusts makes the commits aside, and tells the observer what each changes, the last one after all others.
func (r *running) gusts(ctx context.Context, before string) ([]gust, error) {
	if err := r.repo.SetBranch("storm", before); err != nil {
		return nil, fmt.Errorf("repository: %w", err)
	}
	list := make([]gust, r.Pushes)
	for n := range list {
		g := gust{application: n % r.Spec.Applications, version: stormVersion + n/r.Spec.Applications}
		files, err := r.Spec.Files(g.application, g.version)
		if err != nil {
			return nil, err
		}
		if g.commit, err = r.repo.CommitTo("storm", files, "web: one of many"); err != nil {
			return nil, fmt.Errorf("repository: commit: %w", err)
		}
		err = r.observer.Expect(ctx, observe.Expected{Applications: []int{g.application}, Version: g.version, Revision: g.commit})
		if err != nil {
			return nil, err
		}
		list[n] = g
	}
	return list, nil
}

// blow pushes and announces one commit after the other at the storm's pace; it answers how long the slowest answer took.
func (r *running) blow(ctx context.Context, before string, gusts []gust) (slowest time.Duration, err error) {
	tick := time.NewTicker(stormPause)
	defer tick.Stop()
	for _, g := range gusts {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-tick.C:
		}
		if err := r.repo.SetBranch("main", g.commit); err != nil {
			return 0, fmt.Errorf("repository: push: %w", err)
		}
		sent := time.Now()
		if err := r.lockstep.Announce(ctx, local.Push{Repository: r.Spec.RepoURL, Branch: "main", Before: before, After: g.commit}); err != nil {
			return 0, fmt.Errorf("lockstep: push notice: %w", err)
		}
		slowest, before = max(slowest, time.Since(sent)), g.commit
	}
	return slowest, nil
}
