package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/bench/child"
)

// Role is the argument that makes the program an observer.
const Role = "role-observer"

// backlog is how many put-backs are kept for who reads them late.
const backlog = 4096

// Remote is the observer's process, seen from the benchmark.
type Remote struct {
	process *child.Process
	ended   chan struct{}

	watching chan struct{}
	inStep   chan time.Time
	putBack  chan PutBack

	// sending keeps commands whole; mu is for what is received, which must go on meanwhile.
	sending  sync.Mutex
	mu       sync.Mutex
	progress Progress
	err      error
	// asked is the number of the last command, answers who waits for which.
	asked   int
	answers map[int]chan Message
}

// Start starts an observer and waits until it watches.
func Start(ctx context.Context, c Config) (*Remote, error) {
	process, err := child.Start(Role, c)
	if err != nil {
		return nil, err
	}
	r := &Remote{
		process: process, ended: make(chan struct{}),
		watching: make(chan struct{}, 1), inStep: make(chan time.Time, backlog), putBack: make(chan PutBack, backlog),
		answers: map[int]chan Message{},
	}
	go r.listen()
	if _, err := wait(ctx, r, r.watching); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func (r *Remote) listen() {
	defer close(r.ended)
	for {
		var m Message
		err := r.process.Receive(&m)
		if m.Error != "" {
			err = errors.New("observer: " + m.Error)
		}
		if err != nil {
			r.mu.Lock()
			r.err = err
			r.mu.Unlock()
			return
		}
		r.pass(m)
	}
}

// pass never waits: one message that nobody takes must not hold up the others.
func (r *Remote) pass(m Message) {
	switch {
	case m.ID != 0:
		r.mu.Lock()
		if to, ok := r.answers[m.ID]; ok {
			to <- m // has room for its one answer
		}
		delete(r.answers, m.ID)
		r.mu.Unlock()
	case m.Watching:
		offer(r.watching, struct{}{})
	case m.InStep != nil:
		offer(r.inStep, *m.InStep)
	case m.PutBack != nil:
		offer(r.putBack, *m.PutBack)
	case m.Progress != nil:
		r.mu.Lock()
		r.progress = *m.Progress
		r.mu.Unlock()
	}
}

// ask sends a command and waits for its answer, or for the end of ctx: an answer that comes later is dropped.
func (r *Remote) ask(ctx context.Context, c Command) (Message, error) {
	answer := make(chan Message, 1)
	r.mu.Lock()
	r.asked++
	c.ID = r.asked
	r.answers[c.ID] = answer
	r.mu.Unlock()
	r.sending.Lock()
	err := r.process.Send(c)
	r.sending.Unlock()
	if err != nil {
		return Message{}, err
	}
	return wait(ctx, r, answer)
}

// offer drops the value when nobody has read the last thousands of them.
func offer[T any](to chan T, v T) {
	select {
	case to <- v:
	default:
	}
}

func wait[T any](ctx context.Context, r *Remote, from chan T) (T, error) {
	var none T
	select {
	case v := <-from:
		return v, nil
	case <-r.ended:
		r.mu.Lock()
		defer r.mu.Unlock()
		return none, fmt.Errorf("observer: ended: %w", r.err)
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// InStep waits until everything has come into step, and says when.
func (r *Remote) InStep(ctx context.Context) (time.Time, error) { return wait(ctx, r, r.inStep) }

// PutBack waits until an object is right again that was wrong.
func (r *Remote) PutBack(ctx context.Context) (PutBack, error) { return wait(ctx, r, r.putBack) }

// Expect changes what is expected; it is told before the commit is pushed. Moments of step before it are forgotten.
func (r *Remote) Expect(ctx context.Context, e Expected) error {
	_, err := r.ask(ctx, Command{Expect: &e})
	r.Forget()
	return err
}

// Forget drops the moments of step and the put-backs that nobody has read.
func (r *Remote) Forget() {
	for {
		select {
		case <-r.inStep:
		case <-r.putBack:
		default:
			return
		}
	}
}

// Counts are the changes seen until now.
func (r *Remote) Counts(ctx context.Context) (Counts, error) {
	m, err := r.ask(ctx, Command{Count: true})
	if err != nil {
		return Counts{}, err
	}
	if m.Counts == nil {
		return Counts{}, fmt.Errorf("observer: answer %d has no counts", m.ID)
	}
	return *m.Counts, nil
}

// Progress is what was last said about how much is right.
func (r *Remote) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// PID is the process's number.
func (r *Remote) PID() int { return r.process.PID() }

// Stop ends the process.
func (r *Remote) Stop() error {
	err := r.process.Stop()
	<-r.ended
	return err
}
