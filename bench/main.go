// Command bench measures Lockstep against the floor: a bare program that does the unavoidable on the same cluster in the
// same run. It makes a repository, starts a fresh local cluster for the floor and one for Lockstep, lets an independent
// observer say when everything is in step, and prints a table of values, floor, ratio, target and verdict.
//
//	go run ./bench                        # 1,000 applications × 4 objects, about 5 minutes
//	go run ./bench --applications 100 --only in-step
//	go run ./bench --render --rounds 5    # rendering alone: workers against the libraries in one process, half a minute
//	go run ./bench --plot docs/cost.svg results-100.json results-1000.json
//	go run ./bench --applications 15000 --objects configmap --only in-step
//
// The git server runs in this process; floor, observer and Lockstep are processes of their own. It may depend on the
// packages below it, and runs Lockstep as a program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-cd/lockstep/bench/floor"
	"github.com/lockstep-cd/lockstep/bench/observe"
	"github.com/lockstep-cd/lockstep/bench/plot"
	"github.com/lockstep-cd/lockstep/bench/renders"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/trial"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
	"github.com/lockstep-cd/lockstep/test/local"
)

func main() {
	worker.Branch(nil) // the measure of rendering starts workers
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// dispatch runs a role when the program was started by itself.
func dispatch(ctx context.Context, args []string) error {
	if len(args) == 1 {
		switch args[0] {
		case trial.FloorRole:
			return floor.Main(ctx, os.Stdin, os.Stdout)
		case observe.Role:
			return observe.Main(ctx, os.Stdin, os.Stdout)
		case renders.Role:
			return renders.Main(ctx, os.Stdin, os.Stdout)
		}
	}
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	return o.run(ctx)
}

// options are the flags.
type options struct {
	trial          trial.Options
	json, markdown string
	strict, keep   bool
	render         bool
	// plot is the file that recorded results are drawn into.
	plot    string
	results []string
	args    []string
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{args: args}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	s := &o.trial.Spec
	s.ControlNamespace = "argocd"
	f.IntVar(&s.Applications, "applications", 1000, "number of applications")
	objects := f.String("objects", strings.Join(workload.DefaultKinds(), ","), "objects of each application, of "+strings.Join(workload.KindNames(), ", "))
	f.IntVar(&s.Namespaces, "namespaces", 20, "number of destination namespaces")
	only := f.String("only", "", "measures to take, of "+strings.Join(trial.Names(), ", ")+" (default all)")
	f.IntVar(&o.trial.Rounds, "rounds", 1, "how often floor and Lockstep are measured in turn; the medians count")
	f.DurationVar(&o.trial.IdleFor, "idle", time.Minute, "how long nothing is done for the measure idle")
	f.IntVar(&o.trial.HandChanges, "hand-changes", 200, "how many objects are changed by hand")
	f.IntVar(&o.trial.Commits, "commits", 5, "how many commits change one file each")
	f.IntVar(&o.trial.Pushes, "pushes", 1000, "how many commits the webhook storm has, one every 10 ms")
	f.IntVar(&o.trial.Unrelated, "unrelated", 0, "measure once more beside this many objects that no application declares")
	f.DurationVar(&o.trial.Limit, "limit", 0, "how long a round may take to come into step (default 5m, or 300ms for each application)")
	f.StringVar(&o.trial.Lockstep, "lockstep", "", "program to measure (default: bin/lockstep, built first)")
	f.StringVar(&o.json, "json", "", "file for the results as JSON, - for the standard output")
	f.StringVar(&o.markdown, "markdown", "", "file that the results are appended to as Markdown")
	f.BoolVar(&o.render, "render", false, "measure rendering alone: charts and overlays through workers, against the libraries in one process")
	f.StringVar(&o.plot, "plot", "", "measure nothing, and draw the results in the JSON files that are named into this SVG file")
	f.BoolVar(&o.strict, "strict", false, "exit code 1 when a target that holds now is missed")
	f.BoolVar(&o.keep, "keep", false, "keep logs and data")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if o.results = f.Args(); o.plot != "" {
		return o, nil
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("argument %q: only flags are known", f.Arg(0))
	}
	s.Kinds = strings.Split(*objects, ",")
	if o.trial.Limit == 0 {
		o.trial.Limit = max(5*time.Minute, time.Duration(s.Applications)*300*time.Millisecond)
	}
	if *only != "" {
		o.trial.Only = strings.Split(*only, ",")
	}
	if o.trial.Commits < 1 || o.trial.HandChanges < 1 || o.trial.Pushes < 1 {
		return nil, errors.New("commits, hand-changes, pushes: at least 1 is needed; leave a measure out with --only")
	}
	return o, o.trial.Validate()
}

func (o *options) run(ctx context.Context) (err error) {
	root, err := local.Root()
	if err != nil {
		return err
	}
	if o.plot != "" {
		return o.draw()
	}
	if o.render {
		return o.renders(ctx, root)
	}
	o.trial.Root, o.trial.Progress = root, os.Stderr
	if err := o.build(ctx); err != nil {
		return err
	}
	if o.trial.Dir, err = os.MkdirTemp("", "lockstep-bench-"); err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	r := report.Report{
		Date: time.Now(), Command: strings.Join(append([]string{"go run ./bench"}, o.args...), " "), Machine: trial.Machine(),
		Applications: o.trial.Spec.Applications, Objects: o.trial.Spec.Kinds, Rounds: o.trial.Rounds,
	}
	r.Commit, r.Dirty = trial.Commit(root)
	r.Measures, r.Notes, err = trial.Run(ctx, o.trial)
	if err == nil && !o.keep {
		err = os.RemoveAll(o.trial.Dir)
	} else {
		fmt.Fprintf(os.Stderr, "bench: logs and data are in %s\n", o.trial.Dir)
	}
	if len(r.Measures) > 0 {
		err = errors.Join(err, o.write(r))
	}
	if missed := r.Missed(); err == nil && o.strict && len(missed) > 0 {
		err = fmt.Errorf("missed: %s", strings.Join(missed, ", "))
	}
	return err
}

// renders takes the measure of rendering, which needs no cluster.
func (o *options) renders(ctx context.Context, root string) error {
	dir, err := os.MkdirTemp("", "lockstep-bench-")
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	const each = 100 // issue 4
	r := report.Report{
		Date: time.Now(), Command: strings.Join(append([]string{"go run ./bench"}, o.args...), " "), Machine: trial.Machine(),
		Applications: 2 * each, Objects: []string{"charts", "overlays"}, Rounds: o.trial.Rounds,
	}
	r.Commit, r.Dirty = trial.Commit(root)
	r.Measures, err = renders.Run(ctx, renders.Options{Charts: each, Overlays: each, Rounds: o.trial.Rounds, Dir: dir})
	err = errors.Join(err, os.RemoveAll(dir))
	if err == nil {
		err = o.write(r)
	}
	if missed := r.Missed(); err == nil && o.strict && len(missed) > 0 {
		err = fmt.Errorf("missed: %s", strings.Join(missed, ", "))
	}
	return err
}

// draw reads recorded results and draws them.
func (o *options) draw() error {
	reports := make([]report.Report, len(o.results))
	for i, name := range o.results {
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &reports[i])
		}
		if err != nil {
			return fmt.Errorf("results %s: %w", name, err)
		}
	}
	return into(o.plot, os.O_TRUNC, func(w io.Writer) error { return plot.Write(w, reports) })
}

// build makes the local cluster's program and Lockstep's before anything is measured.
func (o *options) build(ctx context.Context) error {
	err := local.BuildCluster(ctx, o.trial.Root)
	if err == nil && !o.trial.FloorOnly() {
		o.trial.Lockstep, err = local.BuildLockstep(ctx, o.trial.Root, o.trial.Lockstep)
	}
	return err
}

func (o *options) write(r report.Report) error {
	if err := r.Table(os.Stdout); err != nil {
		return err
	}
	if o.json == "-" {
		return r.JSON(os.Stdout)
	}
	return errors.Join(
		into(o.json, os.O_TRUNC, r.JSON),
		into(o.markdown, os.O_APPEND, r.Markdown),
	)
}

// into opens a file for one writer; an empty name is nothing to do.
func into(name string, mode int, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
