package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// run looks at every repository when it is due, until ctx ends.
func (r *repos) run(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	defer func() { _ = group.Wait() }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		next := r.interval
		for _, e := range r.all() {
			wait, due := e.due(r.interval)
			switch {
			case due:
				group.Go(func() error { r.refresh(ctx, e); return nil })
				wait = minAsk
			case e.isUnread():
				group.Go(func() error { r.spread(ctx, e); return nil })
			}
			next = min(next, wait)
		}
		timer.Reset(next)
	}
}

func (r *repos) all() []*repo {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*repo, 0, len(r.byKey))
	for _, e := range r.byKey {
		list = append(list, e)
	}
	return list
}

// due tells whether it is time for a look, else how long that takes.
func (e *repo) due(interval time.Duration) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		interval = min(interval, retryAsk)
	}
	if e.asked {
		interval = minAsk
	}
	wait := interval - time.Since(e.at)
	if e.at.IsZero() {
		return interval, false // the first application that resolves it looks
	}
	return max(wait, 10*time.Millisecond), wait <= 0
}

// refresh looks and wakes the applications for which something is different now.
func (r *repos) refresh(ctx context.Context, e *repo) {
	e.mu.Lock()
	since := e.at
	wasAsked := e.asked
	e.asked = false
	e.mu.Unlock()
	if err := r.look(ctx, e, since); err != nil {
		e.say(r.log, err)
		if wasAsked && ctx.Err() == nil {
			e.mu.Lock()
			e.asked = errors.Is(err, context.DeadlineExceeded)
			e.mu.Unlock()
		}
	}
	r.spread(ctx, e)
	r.nudge()
}

func (e *repo) isUnread() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unread
}

// say logs a failure once, not with every look that finds the same.
func (e *repo) say(log *slog.Logger, err error) {
	e.mu.Lock()
	again := e.said == err.Error()
	e.said = err.Error()
	e.mu.Unlock()
	if !again {
		log.Warn("repository can't be read", "repository", e.key, "error", err)
	}
}
