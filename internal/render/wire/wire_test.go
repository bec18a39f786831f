package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/wire"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// sent is a frame as it goes over the pipe.
func sent(tb testing.TB, k wire.Kind, body func(*wire.Encoder) error) []byte {
	tb.Helper()
	var out bytes.Buffer
	if err := wire.NewConn(nil, &out).Send(k, body); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// received takes a frame off the pipe.
func received(tb testing.TB, frame []byte) (wire.Kind, *wire.Decoder) {
	tb.Helper()
	k, d, err := wire.NewConn(bytes.NewReader(frame), io.Discard).Receive()
	if err != nil {
		tb.Fatal(err)
	}
	return k, d
}

func result() wire.Result {
	return wire.Result{
		Output: job.Output{
			Objects: []manifest.Object{{
				Unstructured: &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
					"x": []any{int64(1), -2.5, 1.0, "text", true, false, nil, map[string]any{}, []any{}, int64(-1 << 62)},
				}}, Origin: manifest.Origin{File: "a.yaml", Line: 3},
			}},
			Warnings: []string{"w"}, Random: true, Generated: map[int][]job.Path{0: {{"x", 1, "y"}}}, Type: v1alpha1.SourceTypeHelm,
			Asked: &job.Asked{KubeVersion: true, AllAPIs: true, APIs: map[string]bool{"apps/v1": true}, Env: map[string]bool{"ARGOCD_APP_NAME": true}},
		},
		Used: []wire.Question{{Op: wire.Stat, Path: "."}, {Op: wire.ReadFile, Tree: 2, Path: "a/b"}},
	}
}

func TestWhatIsSentIsReceived(t *testing.T) {
	_, d := received(t, sent(t, wire.Done, result().Encode))
	got, err := wire.DecodeResult(d)
	if diff := cmp.Diff(result(), got, cmpopts.IgnoreUnexported(job.Asked{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
	task := wire.Task{Tool: v1alpha1.SourceTypeHelm, Refs: []string{"a"}, Ahead: wire.Ahead{
		Tree: 1, Dirs: []string{"a"}, Folders: []wire.Folder{{Path: "a", Entries: []tree.Entry{{Name: "b", Kind: tree.File, Size: -1}}}}, Files: []wire.File{{Path: "a/b", Data: []byte("x")}},
	}}
	task.Input = job.Input{
		Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.ApplicationSourceHelm{Values: "a: 1"}, Kustomize: &v1alpha1.ApplicationSourceKustomize{}},
		Path:   "a", Project: "p", AppName: "web", Namespace: "n", Env: map[string]string{"A": "b"},
		Capabilities: job.Capabilities{KubeVersion: "v1", APIVersions: []string{"v1"}},
	}
	_, d = received(t, sent(t, wire.Render, task.Encode))
	gotTask, err := wire.DecodeTask(d)
	if diff := cmp.Diff(task, gotTask); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	_, d := received(t, sent(t, wire.Answer, wire.Reply{Err: wire.NewFault(7, tree.NotExist("stat", "x"))}.Encode))
	reply, err := wire.DecodeReply(d)
	if err != nil || !errors.Is(reply.Err, fs.ErrNotExist) || errors.Is(reply.Err, tree.ErrOutside) || reply.Err.Error() != "stat x: file does not exist" {
		t.Error(err, reply.Err)
	}
	place := &job.Error{File: "a.yaml", Line: 3, Object: "ConfigMap/a", Reason: "is odd"}
	_, d = received(t, sent(t, wire.Failed, wire.NewRefusal(fmt.Errorf("here: %w: %w", place, reply.Err)).Encode))
	refusal, err := wire.DecodeRefusal(d)
	if err != nil {
		t.Fatal(err)
	}
	own := errors.New("the parent's own")
	got := refusal.Restored(func(n int) error {
		if n != 7 {
			t.Errorf("error %d is asked for", n)
		}
		return own
	})
	var at *job.Error
	if !errors.Is(got, own) || !errors.Is(got, fs.ErrNotExist) || !errors.As(got, &at) || *at != *place || got.Error() != "here: a.yaml:3: ConfigMap/a: is odd: stat x: file does not exist" {
		t.Errorf("%v %+v", got, at)
	}
}

func TestGarbageIsRefused(t *testing.T) {
	good := sent(t, wire.Done, result().Encode)
	object := func(content map[string]any) []byte {
		r := wire.Result{Output: job.Output{Objects: []manifest.Object{{Unstructured: &unstructured.Unstructured{Object: content}}}}}
		return sent(t, wire.Done, r.Encode)
	}
	deep := map[string]any{}
	for range 1000 {
		deep = map[string]any{"a": deep}
	}
	many := make([]any, 6<<20)
	meta := map[string]any{"name": "a"}
	for name, frame := range map[string][]byte{
		"cut off":     append([]byte{byte(wire.Done), 10, 0, 0, 0}, good[5:15]...),
		"too long":    append([]byte{byte(wire.Done), byte(len(good) - 5 + 3), 0, 0, 0}, append(good[5:len(good):len(good)], 0, 0, 0)...),
		"no object":   object(map[string]any{"a": "b"}),
		"odd object":  object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": []any{}}),
		"deep object": object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "x": deep}),
		"many values": object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "x": many}),
	} {
		_, d := received(t, frame)
		if r, err := wire.DecodeResult(d); !errors.Is(err, wire.ErrGarbage) {
			t.Errorf("%s: %v, %d objects", name, err, len(r.Output.Objects))
		}
	}
	for name, frame := range map[string]string{"no kind": "\x63\x00\x00\x00\x00", "too large": "\x04\xff\xff\xff\x7f", "zero": "\x00\x00\x00\x00\x00"} {
		if _, _, err := wire.NewConn(strings.NewReader(frame), nil).Receive(); !errors.Is(err, wire.ErrGarbage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{"..", "/etc/passwd", "a/../b", "./a", "", "a/", "a\x00", strings.Repeat("a", 20<<10)} {
		if wire.ValidPath(path) {
			t.Errorf("path %.20q is valid", path)
		}
	}
	err := wire.NewConn(nil, io.Discard).Send(wire.Ask, wire.Question{Op: wire.Stat, Path: strings.Repeat("a", 1<<20)}.Encode)
	if !errors.Is(err, wire.ErrTooLarge) {
		t.Error(err)
	}
}

// FuzzFrames reads anything as frames of either side: it ends, without a panic, and what it gives is what it was sent.
func FuzzFrames(f *testing.F) {
	f.Add(sent(f, wire.Done, result().Encode))
	f.Add(sent(f, wire.Failed, wire.NewRefusal(&job.Error{File: "a", Reason: "b"}).Encode))
	f.Add(sent(f, wire.Ask, wire.Question{Op: wire.ReadDir, Tree: 1, Path: "a/b"}.Encode))
	f.Add(sent(f, wire.Fetch, wire.EncodeLocator(job.Locator{Kind: job.LocateChart, URL: "u"})))
	f.Add(sent(f, wire.Answer, wire.Reply{Kind: tree.Dir, Data: []byte("x"), Entries: []tree.Entry{{Name: "a", Kind: tree.Link}}, Target: "t"}.Encode))
	f.Add(sent(f, wire.Ready, wire.Greeting{Version: 1}.Encode))
	f.Add(sent(f, wire.Setup, wire.Start{Version: 1}.Encode))
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := wire.NewConn(bytes.NewReader(data), io.Discard)
		for {
			k, d, err := conn.Receive()
			if err != nil {
				return
			}
			switch k {
			case wire.Setup:
				_, _ = wire.DecodeStart(d)
			case wire.Ready:
				_, _ = wire.DecodeGreeting(d)
			case wire.Render:
				_, _ = wire.DecodeTask(d)
			case wire.Ask:
				if q, err := wire.DecodeQuestion(d); err == nil && !wire.ValidPath(q.Path) {
					t.Errorf("path %q", q.Path)
				}
			case wire.Fetch:
				_, _ = wire.DecodeLocator(d)
			case wire.Answer:
				_, _ = wire.DecodeReply(d)
			case wire.Failed:
				if r, err := wire.DecodeRefusal(d); err == nil {
					_ = r.Restored(func(int) error { return nil }).Error()
				}
			case wire.Done:
				again(t, d)
			}
		}
	})
}

// again sends what was received and receives the same.
func again(t *testing.T, d *wire.Decoder) {
	r, err := wire.DecodeResult(d)
	if err != nil {
		return
	}
	_, d = received(t, sent(t, wire.Done, r.Encode))
	got, err := wire.DecodeResult(d)
	if diff := cmp.Diff(r, got, cmpopts.IgnoreUnexported(job.Asked{})); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
