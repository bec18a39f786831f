package queue

import "time"

// State is what the queue holds.
type State struct {
	Waiting, Active int
	// Oldest is how long the oldest item waits, Longest how long the longest work is under way; OldestKey and LongestKey are
	// those they are about.
	Oldest, Longest       time.Duration
	OldestKey, LongestKey string
}

// State reports for metrics and watchdogs.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := State{Waiting: len(q.byKey), Active: len(q.active)}
	now := q.o.Now()
	for _, it := range q.byKey {
		if age := now.Sub(it.since); s.OldestKey == "" || age > s.Oldest {
			s.Oldest, s.OldestKey = max(0, age), it.key
		}
	}
	for key, w := range q.active {
		if age := now.Sub(w.since); s.LongestKey == "" || age > s.Longest {
			s.Longest, s.LongestKey = max(0, age), key
		}
	}
	return s
}

// Asked tells that key waits or is worked on now; what a timer will ask for later does not count.
func (q *Queue) Asked(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.active[key] != nil || q.byKey[key] != nil
}
