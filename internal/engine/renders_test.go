package engine_test

import (
	"bytes"
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/engine"
	renderjob "github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/rendercache"
)

// renders counts renderings by application; it is the test's own wrapper around the workers.
type renders struct {
	mu    sync.Mutex
	byApp map[string]int
	atNow int
	most  int // at a time
	// version of the tools, and a key of the cache other than the usual one.
	version string
	key     []byte
}

// caching gives an engine a rendering cache in the world's data, and counts what it renders.
func (w *world) caching(o *engine.Options) {
	w.t.Helper()
	key := w.renders.key
	if key == nil {
		key = bytes.Repeat([]byte{3}, rendercache.KeySize)
	}
	cache, err := rendercache.Open(rendercache.Options{Dir: w.data + "/renderings", Key: key})
	if err != nil {
		w.t.Fatal(err)
	}
	render := o.Render
	o.Cache, o.Version = cache, "test"+w.renders.version
	o.Render = func(ctx context.Context, in renderjob.Input) (renderjob.Output, error) {
		w.renders.began(in.AppName)
		defer w.renders.ended()
		return render(ctx, in)
	}
}

func (r *renders) began(app string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byApp == nil {
		r.byApp = map[string]int{}
	}
	r.byApp[app]++
	r.atNow++
	r.most = max(r.most, r.atNow)
}

func (r *renders) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.atNow--
}

// rendered is how often applications were rendered since forgetRenders, by the names that the test knows.
func (w *world) rendered() map[string]int {
	w.renders.mu.Lock()
	defer w.renders.mu.Unlock()
	out := map[string]int{}
	for name, n := range w.renders.byApp {
		out[strings.TrimSuffix(name, w.real(""))] = n
	}
	return out
}

func (w *world) forgetRenders() {
	w.renders.mu.Lock()
	defer w.renders.mu.Unlock()
	w.renders.byApp, w.renders.most = nil, 0
}

// wantRendered tells whether just these applications were rendered, once each.
func (w *world) wantRendered(when string, names ...string) {
	w.t.Helper()
	want := map[string]int{}
	for _, n := range names {
		want[n] = 1
	}
	if got := w.rendered(); !maps.Equal(got, want) {
		w.t.Errorf("%s: rendered %v, want %v", when, got, want)
	}
}
