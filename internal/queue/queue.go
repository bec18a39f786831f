// Package queue owns the order in which keys are worked on: by priority, within one by turns between clusters and then
// between projects, within one of these by age; one worker at a time for a key; a key that is asked for again while it waits
// is still one item. It knows nothing of what a key stands for.
package queue

import (
	"context"
	"slices"
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

	priorities = int(Housekeeping) + 1
)

// Lane is whose work a key is. Lanes take turns, so that one with thousands of keys does not hold up another.
type Lane struct{ Cluster, Project string }

// Options of a queue. The zero value keeps one lane.
type Options struct {
	// Place says which lane a key is in, and the priority it has although it is asked for with p. It is called without any
	// lock of the queue held; nil leaves p, in one lane.
	Place func(key string, p Priority) (Lane, Priority)
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Queue hands out keys. The zero value is not usable; see New.
type Queue struct {
	o Options

	mu      sync.Mutex
	lines   [priorities]line
	turns   turns
	byKey   map[string]*item
	active  map[string]*work
	timers  map[string]*timer
	waiting []*waiter
	seq     uint64
	ended   chan struct{}
	closed  bool
}

type item struct {
	key      string
	lane     Lane
	priority Priority
	seq      uint64
	since    time.Time
	index    int
}

// work is under way on a key; again is what is asked of it meanwhile, nil when nothing is.
type work struct {
	lane  Lane
	since time.Time
	again *item
}

// waiter is a worker without work, which takes what is as urgent as least.
type waiter struct {
	least Priority
	got   chan string // holds one
}

type timer struct {
	at   time.Time
	stop *time.Timer
}

// New makes an empty queue.
func New(o Options) *Queue {
	if o.Place == nil {
		o.Place = func(_ string, p Priority) (Lane, Priority) { return Lane{}, p }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Queue{
		o: o, turns: newTurns(), byKey: map[string]*item{}, active: map[string]*work{}, timers: map[string]*timer{},
		ended: make(chan struct{}),
	}
}

// Add asks for key. A key that waits already gets the more urgent of both priorities and keeps its age.
func (q *Queue) Add(key string, p Priority) {
	lane, p := q.o.Place(key, p)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(key, lane, p)
}

func (q *Queue) add(key string, lane Lane, p Priority) {
	if q.closed {
		return
	}
	if it := q.byKey[key]; it != nil {
		if p < it.priority {
			q.lines[it.priority].remove(it)
			it.priority, it.lane = p, lane
			q.lines[p].push(it)
			q.hand() // one who takes nothing less urgent may be free
		}
		return
	}
	q.seq++
	it := &item{key: key, lane: lane, priority: p, seq: q.seq, since: q.o.Now()}
	if busy := q.active[key]; busy != nil {
		if busy.again == nil || p < busy.again.priority {
			busy.again = it
		}
		return
	}
	q.enter(it)
}

// enter puts an item in its line.
func (q *Queue) enter(it *item) {
	q.byKey[it.key] = it
	q.lines[it.priority].push(it)
	q.hand()
}

// AddAfter asks for key after d. Of several, the earliest holds.
func (q *Queue) AddAfter(key string, p Priority, d time.Duration) {
	if d <= 0 {
		q.Add(key, p)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.o.Now().Add(d)
	if t := q.timers[key]; t != nil {
		if !at.Before(t.at) {
			return
		}
		t.stop.Stop()
	}
	if q.closed {
		return
	}
	t := &timer{at: at}
	t.stop = time.AfterFunc(d, func() { q.due(key, t, p) })
	q.timers[key] = t
}

// due asks for a key whose timer has ended, unless another took the timer's place.
func (q *Queue) due(key string, t *timer, p Priority) {
	lane, p := q.o.Place(key, p)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timers[key] == t {
		delete(q.timers, key)
		q.add(key, lane, p)
	}
}

// Get waits for a key that is asked for with the priority least or a more urgent one; Done must follow. It answers false
// when ctx ends or the queue is closed.
func (q *Queue) Get(ctx context.Context, least Priority) (string, bool) {
	w := &waiter{least: least, got: make(chan string, 1)}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return "", false
	}
	q.waiting = append(q.waiting, w)
	q.hand()
	q.mu.Unlock()
	select {
	case key := <-w.got:
		return key, true
	case <-ctx.Done():
	case <-q.ended:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return "", false
	}
	return <-w.got, true // it was handed over in the same moment
}

// hand gives what waits to those who wait for it.
func (q *Queue) hand() {
	for !q.closed {
		p, some := q.urgent()
		if !some {
			return
		}
		i := q.taker(p)
		if i < 0 {
			return
		}
		w := q.waiting[i]
		q.waiting = slices.Delete(q.waiting, i, i+1)
		it := q.lines[p].pop(q.turns)
		delete(q.byKey, it.key)
		q.active[it.key] = &work{lane: it.lane, since: q.o.Now()}
		q.turns.begin(it.lane)
		w.got <- it.key
	}
}

// urgent is the most urgent priority in which something waits.
func (q *Queue) urgent() (Priority, bool) {
	for p := range q.lines {
		if q.lines[p].count > 0 {
			return Priority(p), true
		}
	}
	return 0, false
}

// taker is the place of the waiter for work of priority p: the one who may take the least, so that the others stay free for
// the rest; -1 when nobody may.
func (q *Queue) taker(p Priority) int {
	best := -1
	for i, w := range q.waiting {
		if w.least >= p && (best < 0 || w.least < q.waiting[best].least) {
			best = i
		}
	}
	return best
}

// Done ends the work on key; what was asked meanwhile is queued now.
func (q *Queue) Done(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	done := q.active[key]
	if done == nil {
		return
	}
	delete(q.active, key)
	q.turns.end(done.lane)
	if done.again != nil && !q.closed {
		q.enter(done.again)
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
		q.lines[it.priority].remove(it)
		delete(q.byKey, key)
	}
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
