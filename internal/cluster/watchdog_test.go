package cluster_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/cluster"
)

// frost lets watches of ConfigMaps stand still: what the API server sends does not arrive, and the connection stays open.
type frost struct {
	mu    sync.Mutex
	open  []*frostable
	asked []string
}

type frostable struct {
	io.ReadCloser
	frozen, closed chan struct{}
	once           sync.Once
}

// Read brings what the API server sends; what comes after the frost is held back until the end.
func (b *frostable) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.frozen:
		<-b.closed
		return 0, io.ErrUnexpectedEOF
	default:
		return n, err
	}
}

// Close ends the response.
func (b *frostable) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

func (f *frost) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/configmaps") || r.Method != http.MethodGet {
			return next.RoundTrip(r)
		}
		f.mu.Lock()
		f.asked = append(f.asked, r.URL.RawQuery)
		f.mu.Unlock()
		resp, err := next.RoundTrip(r)
		if err != nil || r.URL.Query().Get("watch") == "" {
			return resp, err
		}
		body := &frostable{ReadCloser: resp.Body, frozen: make(chan struct{}), closed: make(chan struct{})}
		f.mu.Lock()
		f.open = append(f.open, body)
		f.mu.Unlock()
		resp.Body = body
		return resp, nil
	})
}

// come freezes the watches that are open and answers how often was asked until now.
func (f *frost) come() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.open {
		close(b.frozen)
	}
	f.open = nil
	return len(f.asked)
}

func (f *frost) since(n int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked[n:])
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSilentWatchIsRenewed: a watch that brings nothing, not even a bookmark, is made anew from where it stood, without a
// new list; nothing that happened meanwhile is lost.
func TestSilentWatchIsRenewed(t *testing.T) {
	cold := &frost{}
	renewed := make(chan string, 100)
	s := newSiteWith(t, func(o *cluster.Options) {
		o.REST.Wrap(cold.wrap)
		o.Watchdog = cluster.Watchdog{Silence: 3 * time.Second / 2, Renewed: func(kind string, _ time.Duration) {
			select {
			case renewed <- kind:
			default:
			}
		}}
	})
	s.watch(configMapKind())
	s.create("before", "app")
	s.until("the watch works", func() bool { _, ok := s.lookup("before"); return ok })
	asked := cold.come()
	s.create("a", "app")
	s.until("what happened in the silence is known", func() bool { _, ok := s.lookup("a"); return ok })
	select {
	case kind := <-renewed:
		if kind != "configmaps" {
			t.Errorf("renewed %q", kind)
		}
	default:
		t.Error("nobody was told")
	}
	for _, query := range cold.since(asked) {
		if !strings.Contains(query, "watch=true") || strings.Contains(query, "sendInitialEvents") || strings.Contains(query, "resourceVersion=0") {
			t.Errorf("everything was read again: %s", query)
		}
	}
}
