// Package queue owns the order in which keys are worked on: by priority, then by age; one worker at a time for a key; a
// key that is asked for again while it waits is still one item. It knows nothing of what a key stands for.
package queue

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Priority orders work: people first (DESIGN.md §4).
type Priority uint8

// The priorities, most urgent first.
const (
	People Priority = iota
	Commits
	Drift
	Housekeeping
)

// Queue hands out keys. The zero value is not usable; see New.
type Queue struct {
	mu      sync.Mutex
	ready   items
	byKey   map[string]*item
	active  map[string]*item // what is asked of a key while it is worked on; nil entry when nothing is
	timers  map[string]*timer
	seq     uint64
	wake    chan struct{}
	ended   chan struct{}
	closed  bool
	nowFunc func() time.Time
}

type item struct {
	key      string
	priority Priority
	seq      uint64
	since    time.Time
	index    int
}

type timer struct {
	at       time.Time
	priority Priority
	stop     *time.Timer
}

// New makes an empty queue.
func New() *Queue {
	return &Queue{
		byKey: map[string]*item{}, active: map[string]*item{}, timers: map[string]*timer{},
		wake: make(chan struct{}, 1), ended: make(chan struct{}), nowFunc: time.Now,
	}
}

// Add asks for key. A key that waits already gets the more urgent of both priorities.
func (q *Queue) Add(key string, p Priority) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(key, p)
}

func (q *Queue) add(key string, p Priority) {
	if q.closed {
		return
	}
	if it := q.byKey[key]; it != nil {
		if p < it.priority {
			it.priority = p
			heap.Fix(&q.ready, it.index)
		}
		return
	}
	q.seq++
	it := &item{key: key, priority: p, seq: q.seq, since: q.nowFunc()}
	if again, busy := q.active[key]; busy {
		if again == nil || p < again.priority {
			q.active[key] = it
		}
		return
	}
	q.byKey[key] = it
	heap.Push(&q.ready, it)
	q.signal()
}

// AddAfter asks for key after d. Of several, the earliest holds.
func (q *Queue) AddAfter(key string, p Priority, d time.Duration) {
	if d <= 0 {
		q.Add(key, p)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.nowFunc().Add(d)
	if t := q.timers[key]; t != nil {
		if !at.Before(t.at) {
			return
		}
		t.stop.Stop()
	}
	if q.closed {
		return
	}
	t := &timer{at: at, priority: p}
	t.stop = time.AfterFunc(d, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.timers[key] == t {
			delete(q.timers, key)
			q.add(key, p)
		}
	})
	q.timers[key] = t
}

// Get waits for a key; Done must follow. It answers false when ctx ends or the queue is closed.
func (q *Queue) Get(ctx context.Context) (string, bool) {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return "", false
		}
		if len(q.ready) > 0 {
			it, _ := heap.Pop(&q.ready).(*item)
			delete(q.byKey, it.key)
			q.active[it.key] = nil
			if len(q.ready) > 0 {
				q.signal()
			}
			q.mu.Unlock()
			return it.key, true
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return "", false
		case <-q.ended:
			return "", false
		case <-q.wake:
		}
	}
}

// Done ends the work on key; what was asked meanwhile is queued now.
func (q *Queue) Done(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := q.active[key]
	delete(q.active, key)
	if again != nil && !q.closed {
		q.byKey[key] = again
		heap.Push(&q.ready, again)
		q.signal()
	}
}

// Forget drops key and its timer, unless it is worked on.
func (q *Queue) Forget(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.timers[key]; t != nil {
		t.stop.Stop()
		delete(q.timers, key)
	}
	if it := q.byKey[key]; it != nil {
		heap.Remove(&q.ready, it.index)
		delete(q.byKey, key)
	}
}

// State is what the queue holds.
type State struct {
	Waiting, Active int
	// Oldest is how long the oldest item waits.
	Oldest time.Duration
}

// State reports for metrics and watchdogs.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := State{Waiting: len(q.ready), Active: len(q.active)}
	now := q.nowFunc()
	for _, it := range q.ready {
		s.Oldest = max(s.Oldest, now.Sub(it.since))
	}
	return s
}

// Close wakes all who wait and drops what is queued.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	close(q.ended)
	for _, t := range q.timers {
		t.stop.Stop()
	}
}

// signal leaves one wake-up behind; who takes an item and sees more passes it on.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

type items []*item

func (s items) Len() int { return len(s) }
func (s items) Less(i, j int) bool {
	if s[i].priority != s[j].priority {
		return s[i].priority < s[j].priority
	}
	return s[i].seq < s[j].seq
}
func (s items) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *items) Push(x any) {
	it, _ := x.(*item)
	it.index = len(*s)
	*s = append(*s, it)
}

// Pop implements heap.Interface.
func (s *items) Pop() any {
	old := *s
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return it
}

// Asked tells that key waits or is worked on now; what a timer will ask for later does not count.
func (q *Queue) Asked(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, active := q.active[key]
	return active || q.byKey[key] != nil
}
