package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Changed is an application before and after it changed: Old is nil for one that is new, Now for one that is gone.
type Changed struct {
	Old, Now *v1alpha1.Application
}

// feeds hands changes of applications on to those who listen.
type feeds struct {
	mu  sync.Mutex
	all map[*Feed]struct{}
}

// Feed is one listener. Changes of one application that it has not taken yet are one, so that a slow listener holds up nobody
// and needs no more memory than there are applications.
type Feed struct {
	from *feeds
	wake chan struct{}

	mu      sync.Mutex
	pending map[string]Changed
}

// Follow tells of every application that changes from now on, until the feed is closed.
func (e *Engine) Follow() *Feed {
	f := &Feed{from: &e.feeds, wake: make(chan struct{}, 1), pending: map[string]Changed{}}
	e.feeds.mu.Lock()
	defer e.feeds.mu.Unlock()
	if e.feeds.all == nil {
		e.feeds.all = map[*Feed]struct{}{}
	}
	e.feeds.all[f] = struct{}{}
	return f
}

// Close ends the feed.
func (f *Feed) Close() {
	f.from.mu.Lock()
	defer f.from.mu.Unlock()
	delete(f.from.all, f)
}

func (s *feeds) tell(key string, old, now *v1alpha1.Application) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.all {
		f.put(key, Changed{old, now})
	}
}

func (f *Feed) put(key string, c Changed) {
	f.mu.Lock()
	if before, waits := f.pending[key]; waits {
		c.Old = before.Old
	}
	f.pending[key] = c
	if c.Old == nil && c.Now == nil {
		delete(f.pending, key) // came and went unseen
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Next waits for changes and takes all that there are, ordered by name; nil when ctx has ended.
func (f *Feed) Next(ctx context.Context) []Changed {
	for {
		f.mu.Lock()
		taken := f.pending
		f.pending = map[string]Changed{}
		f.mu.Unlock()
		if len(taken) > 0 {
			return slices.SortedFunc(maps.Values(taken), func(a, b Changed) int {
				return cmp.Compare(cmp.Or(a.Now, a.Old).Name, cmp.Or(b.Now, b.Old).Name)
			})
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil
		}
	}
}
