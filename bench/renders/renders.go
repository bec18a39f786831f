// Package renders owns the measure of rendering: the same charts and overlays, cold, by the libraries in one process and by
// a pool of workers, each in a fresh process, in turn. It tells what the walls around templates cost.
//
// It may depend on the renderers and on the benchmark's helper packages.
package renders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/lockstep-cd/lockstep/bench/child"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Role is the argument that makes this program one trial.
const Role = "renders"

// Options of the measure.
type Options struct {
	// Charts and Overlays are how many there are of each.
	Charts, Overlays int
	// Rounds is how often each way is measured; the medians count.
	Rounds int
	// Dir takes the sources.
	Dir string
}

// trial is one way of rendering, for a process of its own.
type trial struct {
	Dir   string
	Paths []string
	// Workers tells to render in workers; AtOnce is how many renderings are asked for at a time.
	Workers bool
	AtOnce  int
}

// outcome of a trial, in seconds.
type outcome struct {
	Wall, CPU float64
	Objects   int
	Error     string
}

// Run measures and returns the lines of the report.
func Run(ctx context.Context, o Options) ([]report.Measure, error) {
	charts, overlays, err := write(o)
	if err != nil {
		return nil, err
	}
	var list []report.Measure
	for _, kind := range []struct {
		name  string
		paths []string
	}{
		{fmt.Sprintf("%d charts and %d overlays", o.Charts, o.Overlays), mixed(charts, overlays)},
		{fmt.Sprintf("%d charts", o.Charts), charts},
		{fmt.Sprintf("%d overlays", o.Overlays), overlays},
	} {
		here, apart, atOnce, err := o.measure(ctx, kind.paths)
		if err != nil {
			return list, err
		}
		target := &report.Target{Max: 1.3, OfFloor: true}
		list = append(list,
			report.Measure{Name: kind.name + ", one at a time", Unit: "s", Value: &apart.Wall, Floor: &here.Wall, Target: target, Note: "cold, through a worker; floor is the libraries in one process"},
			report.Measure{Name: kind.name + ", as many as there are cores", Unit: "s", Value: &atOnce.Wall, Floor: &here.Wall, Target: target},
			report.Measure{Name: kind.name + ", processor time", Unit: "s", Value: &atOnce.CPU, Floor: &here.CPU, Note: "of all processes"},
		)
	}
	return list, nil
}

func (o Options) measure(ctx context.Context, paths []string) (here, apart, atOnce outcome, err error) {
	ways := []trial{
		{Dir: o.Dir, Paths: paths, AtOnce: 1},
		{Dir: o.Dir, Paths: paths, AtOnce: 1, Workers: true},
		{Dir: o.Dir, Paths: paths, AtOnce: runtime.GOMAXPROCS(0), Workers: true},
	}
	found := make([][]outcome, len(ways))
	for range o.Rounds {
		for i, way := range ways {
			if err := ctx.Err(); err != nil {
				return here, apart, atOnce, err
			}
			out, err := run(way)
			if err != nil {
				return here, apart, atOnce, err
			}
			found[i] = append(found[i], out)
		}
	}
	return median(found[0]), median(found[1]), median(found[2]), nil
}

func run(t trial) (out outcome, err error) {
	p, err := child.Start(Role, t)
	if err != nil {
		return out, err
	}
	err = p.Receive(&out)
	if err == nil && out.Error != "" {
		err = errors.New(out.Error)
	}
	return out, errors.Join(err, p.Stop())
}

func median(list []outcome) outcome {
	slices.SortFunc(list, func(a, b outcome) int {
		return int((a.Wall - b.Wall) * 1e9) //nolint:mnd // nanoseconds
	})
	return list[len(list)/2]
}

// mixed takes of both in turn.
func mixed(a, b []string) []string {
	var list []string
	for i := range max(len(a), len(b)) {
		list = append(append(list, a[min(i, len(a)):min(i+1, len(a))]...), b[min(i, len(b)):min(i+1, len(b))]...)
	}
	return list
}

// Main is one trial: it reads what to render and writes how long it took.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	var t trial
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return fmt.Errorf("renders: configuration: %w", err)
	}
	result, err := t.run(ctx)
	if err != nil {
		result.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(result)
}

func (t trial) run(ctx context.Context) (out outcome, err error) {
	files, done, err := tree.Open(t.Dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done()) }()
	started := time.Now()
	renderer := render.Render
	stop := func() {}
	if t.Workers {
		p, err := pool.New(ctx, pool.Options{Size: t.AtOnce})
		if err != nil {
			return out, err
		}
		renderer, stop = p.Render, p.Close
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(t.AtOnce)
	for _, path := range t.Paths {
		group.Go(func() error {
			view, _ := tree.Record(files)
			result, err := renderer(ctx, job.Input{Tree: view, Path: path, AppName: "web", Namespace: "shop", Project: "default"})
			mu.Lock()
			defer mu.Unlock()
			out.Objects += len(result.Objects)
			return err
		})
	}
	err = group.Wait()
	out.Wall = time.Since(started).Seconds()
	stop()
	out.CPU = processorTime()
	return out, err
}

// processorTime is that of this process and of those that it has started and that have ended, in seconds.
func processorTime() float64 {
	total := 0.0
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var use unix.Rusage
		if unix.Getrusage(who, &use) == nil {
			total += time.Duration(use.Utime.Nano() + use.Stime.Nano()).Seconds()
		}
	}
	return total
}

// write makes the sources; charts and overlays are the paths of the applications.
func write(o Options) (charts, overlays []string, err error) {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	files := map[string]string{}
	for i := range o.Charts {
		charts = append(charts, fmt.Sprintf("charts/c%03d", i))
		chart(files, charts[i], i)
	}
	base(files)
	for i := range o.Overlays {
		overlays = append(overlays, fmt.Sprintf("overlays/o%03d", i))
		overlay(files, overlays[i], i)
	}
	return charts, overlays, save(root, files)
}
