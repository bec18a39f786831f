package pool_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

func newPool(t *testing.T, o pool.Options) *pool.Pool {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	p, err := pool.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestRenders(t *testing.T) {
	p := newPool(t, pool.Options{})
	out, err := p.Render(t.Context(), job.Input{Path: "a", AppName: "x", Tree: tree.Map{
		"a/Chart.yaml": []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n"), "a/templates/x.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.Objects[0])
}
