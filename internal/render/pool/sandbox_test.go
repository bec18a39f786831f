//go:build linux

package pool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// evil is a source that a worker of the tests treats as its application's name says.
func evil(what string) job.Input {
	return job.Input{AppName: "hostile:" + what, Project: "evil", Path: "a", Tree: chartTree()}
}

func chartTree() tree.Map {
	return tree.Map{
		"a/Chart.yaml":       []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n"),
		"a/templates/x.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n"),
	}
}

// good is a source of a neighbour.
func good(project string) job.Input {
	return job.Input{AppName: "web", Project: project, Path: "a", Tree: chartTree()}
}

func TestWhatIsForbiddenIsRefused(t *testing.T) {
	p := newPool(t, pool.Options{})
	for what := range tries() {
		t.Run(what, func(t *testing.T) {
			_, err := p.Render(t.Context(), evil(what))
			if err == nil || !strings.Contains(err.Error(), "operation not permitted") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

func TestNothingIsWithinReach(t *testing.T) {
	t.Setenv("LOCKSTEP_SECRET", "canary")
	p := newPool(t, pool.Options{})
	for _, what := range []string{"environment", "open files", "another repository"} {
		t.Run(what, func(t *testing.T) {
			out, err := p.Render(t.Context(), evil(what))
			if err != nil {
				t.Fatal(err)
			}
			loot, _ := out.Objects[0].Object["data"].(map[string]any)["loot"].(string)
			if what != "environment" && loot != "" {
				t.Error(loot)
			}
			for line := range strings.Lines(loot) {
				if name, _, _ := strings.Cut(line, "="); !strings.HasPrefix(name, "GO") && name != "TZ" {
					t.Error(line)
				}
			}
		})
	}
}

// outgrows renders what ends its worker, and then what does not.
func outgrows(t *testing.T, p *pool.Pool, what string, want pool.Bound) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	started := time.Now()
	_, err := p.Render(ctx, evil(what))
	var f *pool.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v, want %s", err, want)
	}
	if detected && (want == pool.Memory || want == pool.Stack || want == pool.Threads) {
		want = f.Bound // the race detector gives up before the runtime does
	}
	if want == pool.Threads && f.Bound == pool.Memory {
		want = f.Bound // with the C library each takes a large stack
	}
	if f.Bound != want {
		t.Errorf("%v, want %s", err, want)
	}
	if again := errors.Is(err, job.ErrInterrupted); again != (f.Bound == pool.Lost || f.Bound == pool.Time) {
		t.Errorf("%v: is tried again: %v", err, again)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("what the worker printed is shown: %v", err)
	}
	t.Logf("%s: %v", time.Since(started).Round(time.Millisecond), err)
	if _, err := p.Render(ctx, good("evil")); err != nil {
		t.Errorf("the next one of the project: %v", err)
	}
}

func TestWhatOutgrowsItsBoundsFailsAlone(t *testing.T) {
	p := newPool(t, pool.Options{Size: 2, CPU: time.Second, Time: time.Minute, Memory: 256 << 20})
	for what, want := range map[string]pool.Bound{
		"take all memory":                     pool.Memory,
		"take all memory without the runtime": pool.Broken,
		"compute for ever":                    pool.CPU,
		"compute for ever on all processors":  pool.CPU,
		"start threads":                       pool.Threads,
		"recurse":                             pool.Stack,
		"exit":                                pool.Lost,
		"crash":                               pool.Lost,
		"panic":                               pool.Broken,
		"write garbage":                       pool.Garbage,
		"announce much":                       pool.Garbage,
		"send no result":                      pool.Garbage,
		"close the pipe":                      pool.Lost,
	} {
		t.Run(what, func(t *testing.T) { outgrows(t, p, what, want) })
	}
}

func TestWhatTakesTooLongFailsAlone(t *testing.T) {
	p := newPool(t, pool.Options{Size: 8, Time: 2 * time.Second})
	for _, what := range []string{"wait for ever", "sleep", "stop half way", "flood"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			outgrows(t, p, what, pool.Time)
		})
	}
}

func TestWhatAsksForEverFailsAlone(t *testing.T) {
	outgrows(t, newPool(t, pool.Options{}), "ask for ever", pool.Reads)
}

func TestWhatIsPrintedDisturbsNothing(t *testing.T) {
	p := newPool(t, pool.Options{})
	_, err := p.Render(t.Context(), evil("print"))
	if err == nil || !strings.Contains(err.Error(), "it went on") {
		t.Error(err)
	}
}

// A project whose renderings never end fills all workers; the neighbours render meanwhile.
func TestANeighbourIsNotHeldUp(t *testing.T) {
	p := newPool(t, pool.Options{Size: 2, CPU: time.Minute, Time: time.Minute, Patience: 100 * time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 4)
	for range 4 {
		go func() {
			_, err := p.Render(ctx, evil("compute for ever on all processors"))
			ended <- err
		}()
	}
	for i := 0; i < 3; {
		if _, rendering := p.Workers(); rendering < 2 {
			continue
		}
		started := time.Now()
		if _, err := p.Render(ctx, good("neighbour")); err != nil {
			t.Fatal(err)
		}
		t.Logf("rendered after %s", time.Since(started))
		if d := time.Since(started); d > 10*time.Second {
			t.Errorf("it took %s", d)
		}
		i++
	}
	stop()
	for range 4 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
