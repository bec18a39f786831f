package pool

import (
	"context"
	"slices"
	"time"
)

// ticket is a rendering that waits for a worker.
type ticket struct {
	project string
	urgent  bool
	since   time.Time
	got     chan turn // holds one
}

// turn is what a ticket gets: a worker, or leave to start one, or an error.
type turn struct {
	worker *process
	err    error
}

// acquire waits for a worker for the project. release must follow when there is no error.
func (p *Pool) acquire(ctx context.Context, project string, urgent bool) (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	now, ok := p.atOnce(project)
	if ok {
		p.mu.Unlock()
		return p.ready(ctx, project, now)
	}
	t := &ticket{project: project, urgent: urgent, since: time.Now(), got: make(chan turn, 1)}
	p.line = append(p.line, t)
	p.mu.Unlock()
	return p.wait(ctx, t)
}

// atOnce finds what can be had without waiting: an idle worker of the project, or leave to start one.
func (p *Pool) atOnce(project string) (turn, bool) {
	p.idle = slices.DeleteFunc(p.idle, func(w *process) bool {
		dead := w.dead()
		if dead {
			p.drop(w)
		}
		return dead
	})
	for i := len(p.idle) - 1; i >= 0; i-- {
		if w := p.idle[i]; w.fits(project) {
			p.idle = slices.Delete(p.idle, i, i+1)
			p.busy[project]++
			return turn{worker: w}, true
		}
	}
	if p.rendering() >= p.o.Size {
		return turn{}, false
	}
	p.busy[project]++
	p.makeRoom()
	return turn{}, true
}

// rendering is the number of renderings under way.
func (p *Pool) rendering() int {
	n := 0
	for _, busy := range p.busy {
		n += busy
	}
	return n
}

// makeRoom ends the idle workers that would be too many beside those that render.
func (p *Pool) makeRoom() {
	for len(p.idle) > 0 && len(p.idle)+p.rendering() > p.o.Size {
		w := p.idle[0]
		p.idle = p.idle[1:]
		p.drop(w)
	}
}

// drop ends a worker that nobody uses.
func (p *Pool) drop(w *process) {
	delete(p.alive, w)
	w.end()
}

// wait is for those who stand in line. Whoever waits for too long behind other projects gets a worker beyond the size: one
// project whose renderings never end must not hold up the others.
func (p *Pool) wait(ctx context.Context, t *ticket) (*process, error) {
	patience := time.NewTicker(p.o.Patience)
	defer patience.Stop()
	for {
		select {
		case got := <-t.got:
			return p.ready(ctx, t.project, got)
		case <-ctx.Done():
			if got, ok := p.leave(t); ok {
				p.release(got.worker, t.project, true)
			}
			return nil, ctx.Err()
		case <-patience.C:
			if p.extra(t) {
				return p.ready(ctx, t.project, turn{})
			}
		}
	}
}

// leave takes a ticket out of the line; it tells what the ticket got in the meantime.
func (p *Pool) leave(t *ticket) (turn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.line, t); i >= 0 {
		p.line = slices.Delete(p.line, i, i+1)
		return turn{}, false
	}
	got := <-t.got
	return got, got.err == nil
}

// extra gives a project that has no worker at all one beyond the size.
func (p *Pool) extra(t *ticket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.line, t)
	if i < 0 || p.busy[t.project] > 0 || p.rendering() >= 2*p.o.Size {
		return false
	}
	p.line = slices.Delete(p.line, i, i+1)
	p.busy[t.project]++
	return true
}

// ready turns leave to start a worker into a worker.
func (p *Pool) ready(ctx context.Context, project string, t turn) (*process, error) {
	if t.err != nil || t.worker != nil {
		return t.worker, t.err
	}
	w, err := p.launcher.start(ctx)
	if err != nil {
		p.release(nil, project, false)
		return nil, err
	}
	w.project = project
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.alive[w] = true
	}
	p.mu.Unlock()
	if closed {
		w.end()
		<-w.ended
		return nil, ErrClosed
	}
	return w, nil
}

// release gives a worker back; one that is not good any more, and none at all, leave their place to another.
func (p *Pool) release(w *process, project string, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[project]--; p.busy[project] == 0 {
		delete(p.busy, project)
	}
	if w != nil && (!good || p.closed || w.renders >= p.o.Renders) {
		p.drop(w)
		w = nil
	}
	if p.closed {
		return
	}
	t := p.next(w)
	switch {
	case t == nil && w != nil:
		w.idleSince = time.Now()
		p.idle = append(p.idle, w)
		p.makeRoom()
	case t != nil:
		p.busy[t.project]++
		if w != nil && !w.fits(t.project) {
			p.drop(w)
			w = nil
		}
		t.got <- turn{worker: w}
	}
}

// next takes who comes next out of the line: whose turn it is, unless that one has not waited for long and somebody of the
// worker's own project is there. A worker that changes its project is replaced, which costs more than a short wait.
func (p *Pool) next(w *process) *ticket {
	if len(p.line) == 0 || p.rendering() >= p.o.Size {
		return nil
	}
	i := p.turn()
	if t := p.line[i]; w != nil && !t.urgent && time.Since(t.since) < p.o.Patience {
		if own := slices.IndexFunc(p.line, func(t *ticket) bool { return w.fits(t.project) }); own >= 0 {
			i = own
		}
	}
	t := p.line[i]
	p.line = slices.Delete(p.line, i, i+1)
	return t
}

// turn is the place of the one whose turn it is: one that somebody waits for, of the project of which the least is rendered,
// the oldest of these.
func (p *Pool) turn() int {
	best := 0
	for i, t := range p.line[1:] {
		was := p.line[best]
		if t.urgent != was.urgent {
			if t.urgent {
				best = i + 1
			}
			continue
		}
		if p.busy[t.project] < p.busy[was.project] {
			best = i + 1
		}
	}
	return best
}

// tidy ends workers that have had no work for a while: all but one soon, the last one later.
func (p *Pool) tidy() {
	tick := time.NewTicker(max(p.o.Spare/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		for len(p.idle) > 0 {
			w, limit := p.idle[0], p.o.Spare
			if len(p.alive) == 1 {
				limit = p.o.Idle
			}
			if time.Since(w.idleSince) < min(limit, p.o.Idle) {
				break
			}
			p.idle = p.idle[1:]
			p.drop(w)
		}
		p.mu.Unlock()
	}
}
