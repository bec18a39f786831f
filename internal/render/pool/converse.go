package pool

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/wire"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// talk is the conversation about one rendering.
type talk struct {
	w  *process
	o  Options
	in job.Input
	// trees by number: that of the source, those of the refs, those that were fetched.
	trees []tree.FS
	// faults are errors that were answered, by number from 1 on.
	faults []error
	ahead  *sender
	left   budget
	// watch ends the worker when it computes for too long; ending is why we ended it.
	watch  *time.Timer
	spare  time.Duration
	since  time.Time
	ending atomic.Pointer[Failure]
}

// budget is what is left of what a worker may ask for. Its bounds are those of the whole conversation: the renderers have
// their own, smaller ones, with better sentences.
type budget struct {
	questions, fetches int
	bytes              int64
}

func newTalk(w *process, o Options, in job.Input, tool v1alpha1.ApplicationSourceType, trees []tree.FS) *talk {
	t := &talk{w: w, o: o, in: in, trees: trees, spare: o.Time}
	t.left = budget{questions: 200_000, fetches: 1000, bytes: 3 * job.MaxRead}
	t.ahead = newSender(t, tool)
	return t
}

// converse has the worker make one rendering.
func converse(ctx context.Context, w *process, c render.Choice, o Options) (job.Output, error) {
	trees := []tree.FS{c.Input.Tree}
	task := wire.Task{Tool: c.Tool, Input: c.Input}
	for name, ref := range c.Input.Refs {
		task.Refs = append(task.Refs, name)
		trees = append(trees, ref)
	}
	t := newTalk(w, o, c.Input, c.Tool, trees)
	task.Ahead = t.ahead.source(c.Input.Path)
	w.renders++
	w.project = c.Input.Project
	w.allow(o.CPU)
	t.watch = time.AfterFunc(o.Time, func() { t.end(tooLong(o.Time)) })
	defer t.watch.Stop()
	stop := context.AfterFunc(ctx, w.end)
	t.since = time.Now()
	out, err := t.run(ctx, task)
	if !stop() {
		return job.Output{}, ctx.Err()
	}
	return out, err
}

// end ends the worker for a reason of ours.
func (t *talk) end(why *Failure) {
	t.ending.CompareAndSwap(nil, why)
	t.w.end()
}

// run talks until the rendering is done.
func (t *talk) run(ctx context.Context, task wire.Task) (job.Output, error) {
	if err := t.w.conn.Send(wire.Render, task.Encode); err != nil {
		if errors.Is(err, wire.ErrTooLarge) {
			return job.Output{}, &job.Error{File: t.in.Path, Reason: "the options of the source are too large"}
		}
		return job.Output{}, t.lost()
	}
	for {
		k, d, err := t.w.conn.Receive()
		t.pause()
		switch {
		case errors.Is(err, wire.ErrGarbage):
			return job.Output{}, t.garbage()
		case err != nil:
			return job.Output{}, t.lost()
		case k == wire.Done:
			return t.done(d)
		case k == wire.Failed:
			return job.Output{}, t.failed(d)
		}
		reply, err := t.reply(ctx, k, d)
		if err != nil {
			return job.Output{}, err
		}
		t.resume()
		if err := t.w.conn.Send(wire.Answer, reply.Encode); err != nil {
			return job.Output{}, t.lost()
		}
	}
}

// pause stops the worker's clock while it waits for us.
func (t *talk) pause() {
	t.watch.Stop()
	t.spare -= time.Since(t.since)
}

func (t *talk) resume() {
	t.since = time.Now()
	t.watch.Reset(max(t.spare, 0))
}

// lost says why the worker is gone.
func (t *talk) lost() error {
	if why := t.ending.Load(); why != nil {
		return why
	}
	t.w.end() // when it is only its output that is gone
	return t.w.verdict(t.o)
}

func (t *talk) garbage() error {
	t.w.end()
	return failure(Garbage, "the worker that rendered sent what can not be understood; please report it")
}

// reply answers a question or a fetch.
func (t *talk) reply(ctx context.Context, k wire.Kind, d *wire.Decoder) (wire.Reply, error) {
	if t.left.questions--; t.left.questions < 0 {
		return wire.Reply{}, t.greedy("asks for more files than any source has")
	}
	var reply wire.Reply
	switch k {
	case wire.Ask:
		q, err := wire.DecodeQuestion(d)
		if err != nil || q.Tree >= len(t.trees) {
			return reply, t.garbage()
		}
		reply = t.look(q)
	case wire.Fetch:
		l, err := wire.DecodeLocator(d)
		if err != nil {
			return reply, t.garbage()
		}
		if t.left.fetches--; t.left.fetches < 0 {
			return reply, t.greedy("asks for more other sources than are fetched for one rendering")
		}
		reply = t.fetch(ctx, l)
	default:
		return reply, t.garbage()
	}
	t.left.bytes -= reply.Size()
	if t.left.bytes < 0 {
		return reply, t.greedy("reads more than is allowed")
	}
	return reply, nil
}

func (t *talk) greedy(what string) error {
	t.w.end()
	return failure(Reads, "the rendering %s; split the application", what)
}

// look answers a question from its tree, and notes it there.
func (t *talk) look(q wire.Question) (r wire.Reply) {
	f := t.trees[q.Tree]
	var err error
	switch q.Op {
	case wire.Stat:
		var e tree.Entry
		e, err = f.Stat(q.Path)
		r.Kind = e.Kind
	case wire.ReadFile:
		r.Data, err = f.ReadFile(q.Path)
	case wire.ReadDir:
		r.Entries, err = f.ReadDir(q.Path)
	case wire.ReadLink:
		r.Target, err = f.ReadLink(q.Path)
	}
	if err != nil {
		return wire.Reply{Err: t.fault(err)}
	}
	r.Ahead = t.ahead.after(q, r)
	return r
}

func (t *talk) fetch(ctx context.Context, l job.Locator) wire.Reply {
	f, err := job.FetchFrom(ctx, t.in.Fetch, l)
	if err != nil {
		return wire.Reply{Err: t.fault(err)}
	}
	t.trees = append(t.trees, f)
	n := len(t.trees) - 1
	return wire.Reply{Tree: n, Ahead: t.ahead.fetched(n, l)}
}

// fault keeps an error here and describes it to the worker.
func (t *talk) fault(err error) *wire.Fault {
	t.faults = append(t.faults, err)
	return wire.NewFault(len(t.faults), err)
}

func (t *talk) numbered(n int) error {
	if n < 1 || n > len(t.faults) {
		return nil
	}
	return t.faults[n-1]
}

func (t *talk) done(d *wire.Decoder) (job.Output, error) {
	r, err := wire.DecodeResult(d)
	if err != nil || !t.used(r.Used) {
		return job.Output{}, t.garbage()
	}
	return r.Output, nil
}

func (t *talk) failed(d *wire.Decoder) error {
	r, err := wire.DecodeRefusal(d)
	if err != nil || !t.used(r.Used) {
		return t.garbage()
	}
	if r.Broken {
		return &Failure{Bound: Broken, reason: r.Text}
	}
	return r.Restored(t.numbered)
}

// used notes in the trees what of that which was sent ahead was needed.
func (t *talk) used(list []wire.Question) bool {
	if t.left.questions -= len(list); t.left.questions < 0 {
		return false
	}
	for _, q := range list {
		if q.Tree >= len(t.trees) {
			return false
		}
		f := t.trees[q.Tree]
		switch q.Op {
		case wire.Stat:
			_, _ = f.Stat(q.Path) // absence is noted, too
		case wire.ReadDir:
			_, _ = f.ReadDir(q.Path)
		case wire.ReadFile:
			if data, sent := t.ahead.sent(q); sent {
				tree.Used(f, q.Path, data)
			} else if _, err := f.Stat(q.Path); err == nil {
				return false // what was not sent was not used
			} else {
				_, _ = f.ReadFile(q.Path)
			}
		default:
			return false
		}
	}
	return true
}
