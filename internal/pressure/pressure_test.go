package pressure

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func TestARefusalHalvesWhatIsUnderWay(t *testing.T) {
	w := newWindow()
	if w.limit != most {
		t.Fatalf("begins with %v", w.limit)
	}
	if !w.take(answer{began: at(0), ended: at(10), refused: true}, 16) || w.limit != 8 {
		t.Fatalf("16 under way and one refused: %v", w.limit)
	}
	// The others of the same round say the same once more.
	if w.take(answer{began: at(5), ended: at(12), refused: true}, 15) || w.limit != 8 {
		t.Errorf("a second refusal of the same round: %v", w.limit)
	}
	for i := range 20 {
		w.take(answer{began: at(20 + i), ended: at(30 + 20*i), refused: true}, 8)
	}
	if w.limit < least || w.limit > 4 {
		t.Errorf("after many refusals: %v", w.limit)
	}
}

func TestItWidensOnlyWhereItIsUsed(t *testing.T) {
	w := window{limit: 4, careful: 4}
	fine := answer{began: at(0), ended: at(10), write: true}
	for range 100 {
		w.take(fine, 2)
	}
	if w.limit != 4 {
		t.Errorf("widened to %v although half was used", w.limit)
	}
	for range 4 {
		w.take(fine, 5)
	}
	if w.limit < 4.9 || w.limit > 5.1 {
		t.Errorf("after a round: %v", w.limit)
	}
	for range 100_000 {
		w.take(fine, most)
	}
	if w.limit != most {
		t.Errorf("in the end: %v", w.limit)
	}
}

func TestSlowWritesNarrow(t *testing.T) {
	w := newWindow()
	write := func(latency time.Duration) bool {
		return w.take(answer{began: at(0), ended: at(0).Add(latency), write: true}, 16)
	}
	for range 50 {
		write(20 * time.Millisecond)
	}
	if write(3 * time.Second) {
		t.Error("one slow write narrowed")
	}
	narrowed := false
	for range 5 {
		narrowed = narrowed || write(3*time.Second)
	}
	if !narrowed || w.limit != 8 {
		t.Errorf("after slow writes: %v", w.limit)
	}
	w = newWindow()
	for range 200 { // twice as slow as it was, and quick all the same
		if write(20*time.Millisecond) || write(400*time.Millisecond) {
			t.Fatal("narrowed by quick writes")
		}
	}
	w = newWindow()
	for range 200 { // far away, and always was
		if write(2 * time.Second) {
			t.Fatal("narrowed by writes as slow as ever")
		}
	}
}

func TestNoAnswerTellsNothing(t *testing.T) {
	w := newWindow()
	if w.take(answer{began: at(0), ended: at(60_000), write: true, failed: true}, 16) || w.limit != most {
		t.Errorf("after a failure: %v", w.limit)
	}
}

// server refuses what is more than it can do at a time.
type server struct {
	can           int64
	now           atomic.Int64
	done, refused atomic.Int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "true" {
		w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's own
		<-r.Context().Done()
		return
	}
	now := s.now.Add(1)
	defer s.now.Add(-1)
	if now > s.can {
		s.refused.Add(1)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	<-time.After(time.Millisecond) // the work
	s.done.Add(1)
}

// Sixteen at a time against a server that can do four: refusals end, all is done, and watches take no part.
func TestRequestsFindWhatTheServerCanDo(t *testing.T) {
	s := &server{can: 4}
	h := httptest.NewServer(s)
	defer h.Close()
	l := New(nil)
	client := &http.Client{Transport: l.Wrap(http.DefaultTransport)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 10 {
		if err := ask(ctx, client, h.URL+"?watch=true", false); err != nil {
			t.Fatal(err)
		}
	}
	const each = 100
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for done := 0; done < each && ctx.Err() == nil; {
				if err := ask(ctx, client, h.URL, true); err == nil {
					done++
				}
			}
		})
	}
	wg.Wait()
	if n := s.done.Load(); n != 16*each {
		t.Errorf("%d done", n)
	}
	if state := l.State(); state.Narrowed == 0 || state.Underway != 0 || state.Waiting != 0 {
		t.Errorf("%+v", state)
	}
	if n := s.refused.Load(); n > 16*each/4 {
		t.Errorf("%d refusals for %d answers", n, 16*each)
	}
}

var errRefused = errors.New("refused")

// ask sends a request and reads the answer, or only its head.
func ask(ctx context.Context, client *http.Client, url string, whole bool) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil || !whole {
		return err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		err = errRefused
	}
	return errors.Join(err, resp.Body.Close())
}

// Who gives up while waiting leaves the line, and holds up nobody.
func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	l := New(nil)
	l.window.limit = 1
	if err := l.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.enter(gone) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	l.leave(answer{began: at(0), ended: at(1)})
	if err := l.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := l.State(); s.Underway != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}
