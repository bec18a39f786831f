package pressure

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limiter bounds the requests to one API server that are under way. All clients of that server share it; watches are not
// counted. It is safe for use by several goroutines.
type Limiter struct {
	now func() time.Time

	mu       sync.Mutex
	window   window
	underway int
	line     []chan struct{} // who waits, the first first
	narrowed int
}

// New makes a limiter; now is the clock, nil for time.Now.
func New(now func() time.Time) *Limiter {
	if now == nil {
		now = time.Now
	}
	return &Limiter{now: now, window: newWindow()}
}

// State is where a limiter stands: how many requests may be under way, how many are, how many wait, and how often it had to
// allow fewer.
type State struct {
	Limit, Underway, Waiting, Narrowed int
}

// State reports for metrics.
func (l *Limiter) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{Limit: int(l.window.limit), Underway: l.underway, Waiting: len(l.line), Narrowed: l.narrowed}
}

// Wrap makes requests through next wait for their turn.
func (l *Limiter) Wrap(next http.RoundTripper) http.RoundTripper { return transport{l, next} }

type transport struct {
	limiter *Limiter
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if watches(r) {
		return t.next.RoundTrip(r)
	}
	if err := t.limiter.enter(r.Context()); err != nil {
		return nil, err
	}
	began := t.limiter.now()
	resp, err := t.next.RoundTrip(r)
	a := answer{began: began, ended: t.limiter.now(), failed: err != nil, write: r.Method != http.MethodGet && r.Method != http.MethodHead}
	a.refused = err == nil && busy(resp.StatusCode)
	t.limiter.leave(a)
	return resp, err
}

// watches tells a request that lasts as long as its client likes.
func watches(r *http.Request) bool {
	q := r.URL.Query()
	return r.Method == http.MethodGet && (q.Get("watch") == "true" || q.Get("watch") == "1" || q.Get("follow") == "true")
}

// busy are the codes of an API server that has too much to do: the first is its own fairness at work, the others come from
// it and from what stands before it when an answer took too long.
func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// enter waits for a turn; leave must follow when there is no error.
func (l *Limiter) enter(ctx context.Context) error {
	l.mu.Lock()
	if len(l.line) == 0 && l.free() {
		l.underway++
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.line = append(l.line, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.line, turn); i >= 0 {
		l.line = slices.Delete(l.line, i, i+1)
	} else { // it came in the same moment
		l.underway--
		l.next()
	}
	return ctx.Err()
}

func (l *Limiter) free() bool { return float64(l.underway+1) <= l.window.limit }

// leave ends a request and lets others begin.
func (l *Limiter) leave(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window.take(a, l.underway) {
		l.narrowed++
	}
	l.underway--
	l.next()
}

// next lets those begin for whom there is room.
func (l *Limiter) next() {
	for len(l.line) > 0 && l.free() {
		close(l.line[0])
		l.line = l.line[1:]
		l.underway++
	}
}
