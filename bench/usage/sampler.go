package usage

import (
	"context"
	"sync"
	"time"
)

// Interval is the time between two samples of memory.
const Interval = 200 * time.Millisecond

// Sampler watches the memory of a process tree.
type Sampler struct {
	root   int
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	peak int64
	last int64
	n    int
}

// Watch samples the tree of root until Stop, or until root has ended.
func Watch(ctx context.Context, root int) *Sampler {
	ctx, cancel := context.WithCancel(ctx)
	s := &Sampler{root: root, cancel: cancel, done: make(chan struct{})}
	s.sample()
	go func() {
		defer close(s.done)
		t := time.NewTicker(Interval)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				s.sample()
			}
		}
	}()
	return s
}

func (s *Sampler) sample() {
	n, err := Memory(s.root)
	if err != nil {
		return // the process has ended; what was seen stays
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.last = n
	s.peak = max(s.peak, n)
}

// Peak is the highest sum seen in bytes, and the number of samples behind it.
func (s *Sampler) Peak() (bytes int64, samples int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak, s.n
}

// Last is the newest sum seen in bytes.
func (s *Sampler) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// CPU is the processor time of the tree until now.
func (s *Sampler) CPU() (time.Duration, error) { return CPU(s.root) }

// Stop ends the sampling and waits for it.
func (s *Sampler) Stop() {
	s.cancel()
	<-s.done
}
