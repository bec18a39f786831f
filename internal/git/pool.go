package git

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pool bounds the readers of all mirrors together. A reader that is idle gives way when another mirror needs one, and
// ends after a time.
type pool struct {
	start func(gitDir string) (*reader, error)
	idle  time.Duration
	slots chan struct{}
	wg    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// free are the idle readers, oldest first.
	free []*pooled
}

type pooled struct {
	*reader
	gitDir string
	timer  *time.Timer
}

func newPool(size int, idle time.Duration, start func(string) (*reader, error)) *pool {
	return &pool{start: start, idle: idle, slots: make(chan struct{}, size)}
}

// do calls fn with a reader of the mirror. When the reader dies under it, fn is called once more with a new one. When
// ctx ends, so does the reader.
func (p *pool) do(ctx context.Context, gitDir string, fn func(*reader) error) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for again := false; ; again = true {
		fresh, err := p.try(ctx, gitDir, fn)
		switch {
		case err == nil || ctx.Err() != nil || final(err):
			return err
		case again && fresh:
			return err
		}
	}
}

// final tells that another reader would answer the same.
func final(err error) bool {
	var big errBig
	return errors.Is(err, errMissing) || errors.Is(err, ErrClosed) || errors.As(err, &big)
}

func (p *pool) try(ctx context.Context, gitDir string, fn func(*reader) error) (fresh bool, err error) {
	r, fresh, err := p.take(gitDir)
	if err != nil {
		return fresh, err
	}
	release := context.AfterFunc(ctx, r.cancel)
	err = fn(r.reader)
	if !release() {
		p.discard(r)
		return fresh, context.Cause(ctx)
	}
	if err == nil || errors.Is(err, errMissing) {
		p.put(r)
		return fresh, err
	}
	p.discard(r) // stopped before its complaints are read, so that they are complete
	if classify(r.complaints.String()).is(ErrCorrupt) && !errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return fresh, err
}

// take gives an idle reader of the mirror or starts one, ending an idle one of another mirror if there are too many.
func (p *pool) take(gitDir string) (*pooled, bool, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, true, ErrClosed
	}
	for i := len(p.free) - 1; i >= 0; i-- {
		if r := p.free[i]; r.gitDir == gitDir {
			p.free = append(p.free[:i], p.free[i+1:]...)
			r.timer.Stop()
			p.mu.Unlock()
			return r, false, nil
		}
	}
	// Every reader holds a slot or is idle: with len(slots) in use, the idle ones must leave room for us.
	var oldest *pooled
	if len(p.free) > 0 && len(p.free)+len(p.slots) > cap(p.slots) {
		oldest, p.free = p.free[0], p.free[1:]
	}
	p.wg.Add(1)
	p.mu.Unlock()
	if oldest != nil {
		oldest.timer.Stop()
		p.discard(oldest)
	}
	r, err := p.start(gitDir)
	if err != nil {
		p.wg.Done()
		return nil, true, fmt.Errorf("git cat-file: %w", err)
	}
	return &pooled{reader: r, gitDir: gitDir}, true, nil
}

func (p *pool) put(r *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		go p.discard(r)
		return
	}
	r.timer = time.AfterFunc(p.idle, func() { p.expire(r) })
	p.free = append(p.free, r)
}

func (p *pool) expire(r *pooled) {
	p.mu.Lock()
	for i, f := range p.free {
		if f == r {
			p.free = append(p.free[:i], p.free[i+1:]...)
			p.mu.Unlock()
			p.discard(r)
			return
		}
	}
	p.mu.Unlock()
}

func (p *pool) discard(r *pooled) {
	r.stop()
	p.wg.Done()
}

// drop ends the idle readers of a mirror.
func (p *pool) drop(gitDir string) {
	p.mu.Lock()
	var gone []*pooled
	rest := p.free[:0]
	for _, r := range p.free {
		if r.gitDir == gitDir {
			gone = append(gone, r)
		} else {
			rest = append(rest, r)
		}
	}
	p.free = rest
	p.mu.Unlock()
	for _, r := range gone {
		r.timer.Stop()
		p.discard(r)
	}
}

// close ends all readers and waits for those in use.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for _, r := range free {
		r.timer.Stop()
		p.discard(r)
	}
	p.wg.Wait()
}
