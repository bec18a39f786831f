package git

import (
	"context"
	"errors"
	"sync"
)

// flights lets all who ask the same at the same time share one run. Unlike singleflight the run ends when the last of
// those who wait has gone, and one caller's cancellation is not the others'.
type flights struct {
	mu    sync.Mutex
	calls map[string]*call
}

type call struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	val     any
	err     error
}

func fly[T any](ctx context.Context, s *Store, key string, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	c, err := s.join(ctx, key, func(ctx context.Context) (any, error) { return fn(ctx) })
	if err != nil {
		return zero, err
	}
	select {
	case <-c.done:
		if c.err != nil {
			return zero, c.err
		}
		return c.val.(T), nil
	case <-ctx.Done():
		s.flights.leave(key, c)
		return zero, context.Cause(ctx)
	}
}

// join finds the run of the key or starts it.
func (s *Store) join(ctx context.Context, key string, fn func(context.Context) (any, error)) (*call, error) {
	s.flights.mu.Lock()
	defer s.flights.mu.Unlock()
	if c, ok := s.flights.calls[key]; ok {
		c.waiting++
		return c, nil
	}
	select {
	case <-s.done:
		return nil, ErrClosed
	default:
	}
	// The run outlives its first caller, so it takes the values of the caller's context and not its end.
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call{done: make(chan struct{}), waiting: 1, cancel: func() { cancel(context.Canceled) }}
	s.flights.calls[key] = c
	s.running.Go(func() {
		defer cancel(nil)
		stop := make(chan struct{})
		s.running.Go(func() {
			select {
			case <-s.done:
				cancel(ErrClosed)
			case <-stop:
			}
		})
		c.val, c.err = fn(run)
		close(stop)
		if c.err != nil && errors.Is(context.Cause(run), ErrClosed) {
			c.err = ErrClosed
		}
		s.flights.forget(key, c)
		close(c.done)
	})
	return c, nil
}

func (f *flights) forget(key string, c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[key] == c {
		delete(f.calls, key)
	}
}

func (f *flights) leave(key string, c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.waiting--; c.waiting == 0 {
		c.cancel()
		if f.calls[key] == c {
			delete(f.calls, key) // who comes now must not get the cancelled run
		}
	}
}
