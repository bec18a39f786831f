//go:build linux

package pool_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
	"github.com/lockstep-cd/lockstep/test/local"
)

// The product is compiled without the C library, whose threads and memory need other system calls than Go's own.
func TestTheProductWorksBehindItsWalls(t *testing.T) {
	root, err := local.Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "lockstep")
	if err := local.Compile(t.Context(), root, program, "./cmd/lockstep"); err != nil {
		t.Fatal(err)
	}
	p := newPool(t, pool.Options{Command: []string{program, worker.Role}})
	for name, in := range inputs() {
		t.Run(name, func(t *testing.T) { same(t, p, in, world()) })
	}
	// Long enough for the runtime to start all the threads that it wants, and to collect its garbage many times.
	busy := good("default")
	busy.Tree = treeOf(chartWith("{{ range until 300 }}{{ $l := list }}{{ range until 200 }}{{ $l = append $l (repeat 1000 \"x\") }}{{ end }}{{ end }}" + cm("x")))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range 3 {
		if _, err := p.Render(ctx, busy); err != nil {
			t.Fatal(err)
		}
	}
	endless := job.Input{Project: "evil", AppName: "web", Path: "a", Tree: treeOf(chartWith(hostileSources()["chart that grows"].files["a/templates/x.yaml"]))}
	if _, err := p.Render(ctx, endless); err == nil {
		t.Error("it renders")
	} else {
		t.Log(err)
	}
}
