package pool

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/wire"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// said is what a worker may say, as it goes over the pipe.
func said(t *testing.T, frames ...func(*wire.Conn) error) []byte {
	var out bytes.Buffer
	conn := wire.NewConn(nil, &out)
	for _, send := range frames {
		if err := send(conn); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// Anything may be what a worker says: the conversation ends, with a result or an error, and what is in no tree is never
// answered. The frames themselves are fuzzed in wire; here that would compile every renderer a second time.
func TestAWorkerMaySayAnything(t *testing.T) {
	ask := func(op wire.Op, tree int, path string) func(*wire.Conn) error {
		return func(c *wire.Conn) error {
			return c.Send(wire.Ask, wire.Question{Op: op, Tree: tree, Path: path}.Encode)
		}
	}
	done := func(used ...wire.Question) func(*wire.Conn) error {
		object := manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}}}}
		return func(c *wire.Conn) error {
			return c.Send(wire.Done, wire.Result{Used: used, Output: job.Output{Objects: []manifest.Object{object}}}.Encode)
		}
	}
	fetch := func(c *wire.Conn) error {
		return c.Send(wire.Fetch, wire.EncodeLocator(job.Locator{Kind: job.LocateChart, URL: "https://example.com", Chart: "a"}))
	}
	for _, whole := range [][]byte{
		said(t, ask(wire.Stat, 0, "a"), ask(wire.ReadDir, 0, "a"), ask(wire.ReadFile, 0, "a/x"), ask(wire.ReadLink, 1, "a"), done()),
		said(t, fetch, ask(wire.ReadFile, 2, "x"), done(wire.Question{Op: wire.ReadFile, Path: "a/x"}, wire.Question{Op: wire.Stat, Tree: 1, Path: "none"})),
		said(t, ask(wire.ReadFile, 9, "x")),
		said(t, func(c *wire.Conn) error {
			return c.Send(wire.Failed, wire.NewRefusal(&job.Error{File: "a", Reason: "b"}).Encode)
		}),
	} {
		hear(t, whole)
		for n := range rounds {
			hear(t, mangled(rand.New(rand.NewPCG(uint64(n), uint64(len(whole)))), whole)) //nolint:gosec // the same in each run
		}
	}
}

// rounds is how often each conversation is mangled.
const rounds = 5000

// mangled is text with a few bytes changed, left out, doubled, or cut off.
func mangled(r *rand.Rand, text []byte) []byte {
	out := slices.Clone(text)
	for range 1 + r.IntN(4) {
		if len(out) == 0 {
			return out
		}
		switch at := r.IntN(len(out)); r.IntN(4) {
		case 0:
			out[at] = byte(r.IntN(256))
		case 1:
			out = slices.Delete(out, at, min(len(out), at+1+r.IntN(8)))
		case 2:
			out = slices.Insert(out, at, out[at:min(len(out), at+1+r.IntN(32))]...)
		case 3:
			out = out[:at]
		}
	}
	return out
}

// hear takes data for what a worker says.
func hear(t *testing.T, data []byte) {
	t.Helper()
	ended := make(chan struct{})
	close(ended)
	w := &process{kill: func() {}, stdout: io.NopCloser(nil), said: &tail{}, ended: ended, mayUse: time.Hour}
	w.conn = wire.NewConn(bytes.NewReader(data), io.Discard)
	in := job.Input{Path: "a", Fetch: nowhere{}}
	files := tree.Map{"a/x": []byte("1"), "a/b/y": []byte("2")}
	view, reads := tree.Record(files)
	talk := newTalk(w, Options{Time: time.Minute}.completed(), in, v1alpha1.SourceTypeKustomize, []tree.FS{view, tree.Map{"v": []byte("3")}})
	talk.watch = time.NewTimer(time.Hour)
	out, err := talk.run(t.Context(), wire.Task{Input: in, Ahead: talk.ahead.source("a")})
	if err == nil {
		for _, o := range out.Objects {
			_, _ = o.Key(), o.DeepCopy() // what every link of the chain does with it
		}
	}
	if list := reads.Reads(); !list.Hold(files) {
		t.Errorf("noted as read is what is not so: %v", list)
	}
}

type nowhere struct{}

func (nowhere) Fetch(_ context.Context, l job.Locator) (tree.FS, error) {
	if l.Kind == job.LocateChart {
		return tree.Map{"x": []byte("4")}, nil
	}
	return nil, job.ErrNoFetcher
}
