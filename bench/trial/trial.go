// Package trial owns one run of the benchmark: it makes the repository, starts clusters, the floor, Lockstep and the
// observer as processes of their own, one after the other, and turns what they say into measures.
//
// It may depend on the other packages of the benchmark, on internal/install, test/gitserver and test/local. Lockstep
// itself is a program to it.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockstep-cd/lockstep/bench/report"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// The measures, by the names that people select them with.
const (
	Floor     = "floor"
	InStep    = "in-step"
	Idle      = "idle"
	Restart   = "restart"
	Heal      = "heal"
	Change    = "change"
	ByHand    = "by-hand"
	Storm     = "storm"
	Unrelated = "unrelated"
)

// Names are the measures in the order in which they are taken.
func Names() []string {
	return []string{Floor, InStep, Idle, Restart, Heal, Change, ByHand, Storm, Unrelated}
}

// Options of a run.
type Options struct {
	// Root is the folder of the module.
	Root string
	// Spec says what is deployed; the repository is filled in.
	Spec workload.Spec
	// Only are the measures to take; empty takes all. In-step takes the floor, too; the floor alone runs no Lockstep; the
	// others stand on a Lockstep in step, so one is brought there for them.
	Only []string
	// Rounds repeats floor and in-step in turn; the medians count. At least 1.
	Rounds int
	// IdleFor is how long nothing is done for the measure idle.
	IdleFor time.Duration
	// HandChanges and Commits are how many objects are changed by hand, and how many commits change one file each.
	HandChanges, Commits int
	// Pushes is how many commits the webhook storm has.
	Pushes int
	// Unrelated is beside how many objects that no application declares Lockstep is measured once more; 0 leaves it out.
	Unrelated int
	// Limit is how long one round may take to come into step.
	Limit time.Duration
	// Lockstep is the program to measure.
	Lockstep string
	// Progress takes lines for people.
	Progress io.Writer
	// Dir holds clusters, data and logs.
	Dir string
}

func (o Options) wants(name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }

// FloorOnly tells that no Lockstep is needed.
func (o Options) FloorOnly() bool { return len(o.Only) == 1 && o.Only[0] == Floor }

// Validate says what of the options makes no sense.
func (o Options) Validate() error {
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("measure %q is unknown; known are %q", name, Names())
		}
	}
	if o.Rounds < 1 {
		return fmt.Errorf("rounds %d: at least 1 is needed", o.Rounds)
	}
	return o.Spec.Validate()
}

// trial is a run under way.
type trial struct {
	Options
	git   *gitserver.Server
	repo  *gitserver.Repo
	notes []string
	// others is how many unrelated objects the next cluster gets.
	others int
}

// Run takes the measures. On an error the measures taken until then are returned, too.
func Run(ctx context.Context, o Options) (measures []report.Measure, notes []string, err error) {
	if err := o.Validate(); err != nil {
		return nil, nil, err
	}
	t := &trial{Options: o}
	t.say("make a repository of %d applications × %d objects", o.Spec.Applications, len(o.Spec.Kinds))
	if err := t.makeRepository(); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, t.git.Close()) }()
	measures, err = t.rounds(ctx)
	return measures, t.notes, err
}

func (t *trial) makeRepository() (err error) {
	if t.git, err = gitserver.Start(gitserver.Options{Dir: filepath.Join(t.Dir, "git")}); err != nil {
		return fmt.Errorf("git server: %w", err)
	}
	files, err := t.Spec.Repository()
	if err != nil {
		return err
	}
	if t.repo, err = t.git.Create("shop", files); err != nil {
		return fmt.Errorf("repository: %w", err)
	}
	t.Spec.RepoURL = t.repo.URL()
	t.Spec.Revision, err = t.repo.Resolve("refs/heads/main")
	return err
}

// rounds runs floor and Lockstep in turn. The Lockstep of the last round stays for the other measures.
func (t *trial) rounds(ctx context.Context) ([]report.Measure, error) {
	var floors, ours []outcome
	for n := range t.Rounds {
		if t.wants(Floor) || t.wants(InStep) {
			f, err := t.floorRound(ctx, n)
			if err != nil {
				return nil, fmt.Errorf("floor: %w", err)
			}
			floors = append(floors, f)
			t.say("floor: %s", f)
		}
		last := n == t.Rounds-1
		if t.FloorOnly() {
			if last {
				return t.inStepMeasures(floors, nil), nil
			}
			continue
		}
		more, o, err := t.lockstepRound(ctx, n, last)
		if o != nil {
			ours = append(ours, *o)
		}
		if err != nil || last {
			beside, besideErr := t.unrelated(ctx, ours)
			return slices.Concat(t.inStepMeasures(floors, ours), more, beside), errors.Join(err, besideErr)
		}
	}
	return nil, nil
}

func (t *trial) say(format string, args ...any) {
	fmt.Fprintf(t.Progress, "bench: "+format+"\n", args...)
}

func (t *trial) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// dir makes a folder of the run.
func (t *trial) dir(name string) (string, error) {
	dir := filepath.Join(t.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("directory: %w", err)
	}
	return dir, nil
}
