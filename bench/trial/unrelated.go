package trial

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/workload"
)

// makersAtOnce is how many of the unrelated objects are made at a time.
const makersAtOnce = 16

// unrelated measures Lockstep once more, in a cluster with many objects that no application declares, and holds it against
// the rounds without them, which stand in the place of the floor.
func (t *trial) unrelated(ctx context.Context, without []outcome) ([]report.Measure, error) {
	if !t.wants(Unrelated) || t.Unrelated == 0 || len(without) == 0 {
		return nil, nil
	}
	// The other measures have pushed since; what is compared begins at the same commit.
	if err := t.repo.SetBranch("main", t.Spec.Revision); err != nil {
		return nil, fmt.Errorf("repository: %w", err)
	}
	t.others = t.Unrelated
	defer func() { t.others = 0 }()
	_, with, err := t.lockstepRound(ctx, t.Rounds, false)
	if err != nil {
		return nil, fmt.Errorf("beside unrelated objects: %w", err)
	}
	return unrelatedMeasures(t.Unrelated, without, *with), nil
}

func unrelatedMeasures(n int, without []outcome, with outcome) []report.Measure {
	name := fmt.Sprintf("beside %d unrelated objects: ", n)
	of := func(value func(outcome) float64) (float64, float64) {
		list := make([]float64, 0, len(without))
		for _, o := range without {
			list = append(list, value(o))
		}
		return value(with), percentile(list, 50)
	}
	cpu, cpuWithout := of(func(o outcome) float64 { return o.cpu.Seconds() })
	memory, memoryWithout := of(func(o outcome) float64 { return float64(o.memory) / (1 << 20) })
	tenth := &report.Target{Max: 1.1, OfFloor: true}
	return []report.Measure{
		{Name: name + "CPU until in step", Unit: "s", Value: &cpu, Floor: &cpuWithout, Later: tenth, Note: "floor is Lockstep without them"},
		{Name: name + "memory until in step", Unit: "MB", Value: &memory, Floor: &memoryWithout, Later: tenth, Note: "floor is Lockstep without them"},
	}
}

// makeOthers makes the unrelated objects.
func (t *trial) makeOthers(ctx context.Context, c *cluster) error {
	if t.others == 0 {
		return nil
	}
	t.say("make %d unrelated objects", t.others)
	for n := range workload.UnrelatedNamespaces {
		body, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": workload.UnrelatedNamespace(n)},
		})
		if err != nil {
			return err
		}
		if err := c.client.Post().AbsPath("/api/v1/namespaces").Body(body).Do(ctx).Error(); err != nil {
			return fmt.Errorf("namespace %s: create: %w", workload.UnrelatedNamespace(n), err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(makersAtOnce)
	for i := range t.others {
		group.Go(func() error {
			path, object := workload.UnrelatedObject(i)
			body, err := json.Marshal(object)
			if err != nil {
				return err
			}
			if err := c.client.Post().AbsPath(path).Body(body).Do(ctx).Error(); err != nil {
				return fmt.Errorf("unrelated object %d: create: %w", i, err)
			}
			return nil
		})
	}
	return group.Wait()
}
