package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/lockstep-cd/lockstep/bench/child"
	"github.com/lockstep-cd/lockstep/bench/floor"
	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/observe"
	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/usage"
)

// FloorRole is the argument that makes the program a floor, or a creator of Applications.
const FloorRole = "role-floor"

// outcome is what one round has come to.
type outcome struct {
	wall, cpu time.Duration
	// whole is the processor time of everything that the benchmark started: control plane, git server and observer, too.
	whole time.Duration
	// memory is the highest sum of Pss in bytes.
	memory int64
	// writes to the API server on Applications and their objects, the creation of Applications included.
	writes kube.Writes
	// elsewhere is the share of the machine, 1 being all cores, that processes had which the benchmark did not start.
	elsewhere float64
	// statusSize in bytes of one Application.
	statusSize int
}

func (o outcome) String() string {
	return fmt.Sprintf("in step after %.1f s, %.1f CPU s, %d MB, %d writes, other programs had %.0f%% of the machine",
		o.wall.Seconds(), o.cpu.Seconds(), o.memory>>20, o.writes.Total(), 100*o.elsewhere)
}

// floorRound measures the floor on a cluster of its own.
func (t *trial) floorRound(ctx context.Context, n int) (o outcome, err error) {
	c, err := t.freshCluster(ctx, fmt.Sprintf("floor-%d", n))
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	watcher, err := observe.Start(ctx, observe.Config{Kubeconfig: c.Kubeconfig, Spec: t.Spec})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, watcher.Stop()) }()
	writer, err := startWriter(floor.Config{Kubeconfig: c.Kubeconfig, Spec: t.Spec})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, writer.Stop()) }()
	sampler := usage.Watch(ctx, writer.PID())
	defer sampler.Stop()
	return t.clock(ctx, setup{cluster: c, observer: watcher, writer: writer, sampler: sampler})
}

func (t *trial) freshCluster(ctx context.Context, name string) (*cluster, error) {
	dir, err := t.dir("cluster-" + name)
	if err != nil {
		return nil, err
	}
	t.say("start a cluster for %s", name)
	c, err := startCluster(ctx, t.Root, dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.prepare(ctx, t.Spec), t.makeOthers(ctx, c)); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func startWriter(c floor.Config) (*child.Process, error) {
	p, err := child.Start(FloorRole, c)
	if err != nil {
		return nil, err
	}
	var m floor.Message
	if err := p.Receive(&m); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// setup is everything that one round needs.
type setup struct {
	cluster  *cluster
	observer *observe.Remote
	// writer creates the Applications; it is the floor, or the creator.
	writer *child.Process
	// sampler watches who is measured.
	sampler *usage.Sampler
}

// clock runs one round: from the first create until the observer sees everything in step.
func (t *trial) clock(ctx context.Context, s setup) (o outcome, err error) {
	before, err := kube.CountWrites(ctx, s.cluster.client)
	if err != nil {
		return o, err
	}
	others, err := startElsewhere()
	if err != nil {
		return o, err
	}
	if err := s.writer.Send("go"); err != nil {
		return o, err
	}
	written := make(chan error, 1)
	var m floor.Message
	go func() { written <- s.writer.Receive(&m) }()
	reached, err := t.awaitStep(ctx, s.observer)
	if err != nil {
		return o, err
	}
	if o.cpu, err = s.sampler.CPU(); err != nil {
		return o, err
	}
	if o.whole, o.elsewhere, err = others.since(); err != nil {
		return o, err
	}
	if err := <-written; err != nil {
		return o, err
	}
	if m.Error != "" {
		return o, errors.New(m.Error)
	}
	o.wall = reached.Sub(m.First)
	o.memory, _ = s.sampler.Peak()
	after, err := kube.CountWrites(ctx, s.cluster.client)
	if err != nil {
		return o, err
	}
	o.writes = after.Minus(before)
	o.statusSize, err = t.statusSize(ctx, s.cluster)
	return o, err
}

// awaitStep waits until everything is in step and shows how far it is.
func (t *trial) awaitStep(ctx context.Context, o *observe.Remote) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for began := time.Now(); ; {
			select {
			case <-done:
				return
			case <-tick.C:
				p := o.Progress()
				t.say("%3.0f s: %d of %d objects, %d of %d applications", time.Since(began).Seconds(),
					p.Objects, t.Spec.Applications*len(t.Spec.Kinds), p.Applications, t.Spec.Applications)
			}
		}
	}()
	reached, err := o.InStep(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		p := o.Progress()
		return reached, fmt.Errorf("not in step within %s: %d objects and %d applications are right; %s", t.Limit, p.Objects, p.Applications, p.Waiting)
	}
	return reached, err
}

func (t *trial) statusSize(ctx context.Context, c *cluster) (int, error) {
	text, err := c.client.Get().AbsPath(kube.Applications(t.Spec.ControlNamespace) + "/" + t.Spec.Name(0)).Do(ctx).Raw()
	if err != nil {
		return 0, fmt.Errorf("application %s: get: %w", t.Spec.Name(0), err)
	}
	var app struct {
		Status json.RawMessage `json:"status"`
	}
	err = json.Unmarshal(text, &app)
	return len(app.Status), err
}

// elsewhere measures what other programs take of the machine, since they make every number worse.
type elsewhere struct {
	began         time.Time
	machine, ours time.Duration
}

func startElsewhere() (e elsewhere, err error) {
	e.began = time.Now()
	if e.machine, err = usage.Machine(); err != nil {
		return e, err
	}
	e.ours, err = usage.CPU(os.Getpid())
	return e, err
}

// since gives our own processor time since the start, and the others' share of the machine.
func (e elsewhere) since() (own time.Duration, others float64, err error) {
	now, err := startElsewhere()
	if err != nil {
		return 0, 0, err
	}
	own = now.ours - e.ours
	rest := now.machine - e.machine - own
	return own, max(0, rest.Seconds()/now.began.Sub(e.began).Seconds()/float64(cores())), nil
}

// inStepMeasures are the medians of the rounds.
func (t *trial) inStepMeasures(floors, ours []outcome) []report.Measure {
	pick := func(of []outcome, f func(outcome) float64) *float64 {
		if len(of) == 0 {
			return nil
		}
		values := make([]float64, len(of))
		for i, o := range of {
			values[i] = f(o)
		}
		return new(percentile(values, 50))
	}
	line := func(m report.Measure, f func(outcome) float64) report.Measure {
		m.Value, m.Floor = pick(ours, f), pick(floors, f)
		return m
	}
	apps := float64(t.Spec.Applications)
	t.noteDisturbed("the floor", floors)
	t.noteDisturbed("Lockstep", ours)
	if len(floors) > 0 && len(ours) > 0 {
		t.note("status of one Application: %d bytes written by the floor, %d by Lockstep", floors[0].statusSize, ours[0].statusSize)
	}
	return []report.Measure{
		line(report.Measure{
			Name: "create → in step", Unit: "s",
			Target: &report.Target{Max: 2.5, OfFloor: true}, Later: &report.Target{Max: 1.8, OfFloor: true},
		}, func(o outcome) float64 { return o.wall.Seconds() }),
		line(report.Measure{Name: "CPU until in step", Unit: "s", Later: t.atThousand(20)},
			func(o outcome) float64 { return o.cpu.Seconds() }),
		line(report.Measure{Name: "CPU with control plane, git, observer", Unit: "s"},
			func(o outcome) float64 { return o.whole.Seconds() }),
		line(report.Measure{Name: "memory until in step", Unit: "MB", Later: t.atThousand(200)},
			func(o outcome) float64 { return float64(o.memory) / (1 << 20) }),
		line(report.Measure{Name: "writes for one application", Note: breakdown(ours)},
			func(o outcome) float64 { return float64(o.writes.Total()) / apps }),
	}
}

// noteDisturbed names the rounds in which other programs took more than 5% of the machine.
func (t *trial) noteDisturbed(whose string, rounds []outcome) {
	for n, o := range rounds {
		if o.elsewhere > 0.05 {
			t.note("other programs had %.0f%% of the machine during round %d of %s (%.1f s): its time is longer than it should be",
				100*o.elsewhere, n+1, whose, o.wall.Seconds())
		}
	}
}

// breakdown says which writes the last round had.
func breakdown(ours []outcome) string {
	if len(ours) == 0 {
		return ""
	}
	return "in all " + ours[len(ours)-1].writes.String()
}

// atThousand is a target that is set for 1,000 applications and holds for no other size.
func (t *trial) atThousand(limit float64) *report.Target {
	if t.Spec.Applications != 1000 {
		return nil
	}
	return &report.Target{Max: limit}
}

// percentile is the smallest value that p percent of the values do not exceed; 0 of none.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}
