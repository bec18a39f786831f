package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/observe"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/test/local"
)

// changeLimit is how long one commit may take to arrive.
const changeLimit = time.Minute

// change commits one changed file of one application, several times, and announces each push as a forge does. The time
// runs from before the announcement is sent until the observer sees everything in step with the commit.
func (r *running) change(ctx context.Context) ([]report.Measure, error) {
	r.say("commit one changed file, %d times", r.Commits)
	var steps, answers []float64
	before, err := r.lockstep.rendered(ctx)
	if err != nil {
		return nil, err
	}
	writes, err := kube.CountWrites(ctx, r.cluster.client)
	if err != nil {
		return nil, err
	}
	for n := range r.Commits {
		if err := r.pause(ctx); err != nil {
			return nil, err
		}
		step, answer, err := r.commit(ctx, (2*n+1)*r.Spec.Applications/(2*r.Commits))
		if err != nil {
			return nil, err
		}
		steps, answers = append(steps, step.Seconds()), append(answers, float64(answer)/float64(time.Millisecond))
	}
	if err := r.pause(ctx); err != nil {
		return nil, err
	}
	after, err := r.lockstep.rendered(ctx)
	if err != nil {
		return nil, err
	}
	wrote, err := kube.CountWrites(ctx, r.cluster.client)
	if err != nil {
		return nil, err
	}
	wrote = wrote.Minus(writes)
	name := fmt.Sprintf("one changed file of %d applications", r.Spec.Applications)
	return []report.Measure{
		{
			Name: name + " → in step", Unit: "s", Value: new(percentile(steps, 50)), Later: &report.Target{Max: 1, Below: true},
			Note: fmt.Sprintf("median of %d commits; the slowest %.2f s", len(steps), slices.Max(steps)),
		},
		{Name: "renders for one changed file", Value: new((after - before) / float64(r.Commits)), Later: &report.Target{Max: 1, Exactly: true}},
		{
			Name: "writes for one changed file", Value: new(float64(wrote.Total()) / float64(r.Commits)),
			Note: fmt.Sprintf("of %d commits together: %s", r.Commits, wrote),
		},
		{Name: "webhook answer", Unit: "ms", Value: new(slices.Max(answers)), Later: &report.Target{Max: 50, Below: true}, Note: "the slowest"},
	}, nil
}

// pause keeps pushes apart, since this measures single ones: until nothing changes for a while, and at most some seconds
// where Lockstep goes on writing.
func (r *running) pause(ctx context.Context) error {
	err := r.calm(ctx, 2*time.Second, pace{quietEvery, 10 * time.Second})
	if errors.Is(err, errRestless) {
		return nil
	}
	return err
}

func (r *running) commit(ctx context.Context, i int) (step, answer time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	const version = workload.FirstVersion + 1
	files, err := r.Spec.Files(i, version)
	if err != nil {
		return 0, 0, err
	}
	before, err := r.repo.Resolve("refs/heads/main")
	if err != nil {
		return 0, 0, err
	}
	// The commit is made aside, so that the observer knows what to expect before anybody can see it.
	after, err := r.repo.CommitTo("next", files, "web: another image")
	if err != nil {
		return 0, 0, fmt.Errorf("repository: commit: %w", err)
	}
	if err := r.observer.Expect(ctx, observe.Expected{Applications: []int{i}, Version: version, Revision: after}); err != nil {
		return 0, 0, err
	}
	if err := r.repo.SetBranch("main", after); err != nil {
		return 0, 0, fmt.Errorf("repository: push: %w", err)
	}
	sent := time.Now()
	push := local.Push{
		Repository: r.Spec.RepoURL, Branch: "main", Before: before, After: after,
		Modified: []string{r.Spec.Path(i) + "/" + r.Spec.Kinds[0] + ".yaml"},
	}
	if err := r.lockstep.Announce(ctx, push); err != nil {
		return 0, 0, fmt.Errorf("lockstep: push notice: %w", err)
	}
	answer = time.Since(sent)
	reached, err := r.observer.InStep(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("application %s: commit %.7s: not in step: %w; %s", r.Spec.Name(i), after, err, r.observer.Progress().Waiting)
	}
	return reached.Sub(sent), answer, nil
}
