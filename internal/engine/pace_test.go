package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// crowded is an API server that takes few writes at a time, and refuses the others as its own fairness does.
type crowded struct {
	can      int64
	underway atomic.Int64
	refused  atomic.Int64
}

// wayIn is one client's way to it.
type wayIn struct {
	*crowded
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c wayIn) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return c.next.RoundTrip(r)
	}
	defer c.underway.Add(-1)
	if c.underway.Add(1) <= c.can {
		return c.next.RoundTrip(r)
	}
	c.refused.Add(1)
	return &http.Response{
		StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Retry-After": {"1"}, "Content-Type": {"text/plain"}}, Body: io.NopCloser(bytes.NewReader(nil)),
	}, nil
}

// A cluster that refuses writes as too many gets fewer of them at a time, and everything comes into step.
func TestWritesFindTheClustersPace(t *testing.T) {
	w := newWorld(t)
	c := &crowded{can: 2}
	w.restart(false, func(o *engine.Options) {
		o.REST.Wrap(func(next http.RoundTripper) http.RoundTripper { return wayIn{c, next} })
	})
	files, apps := map[string]string{}, 30
	for i := range apps {
		files[fmt.Sprintf("p%d/a.yaml", i)] = configMap(fmt.Sprintf("pa%d", i), "1")
		files[fmt.Sprintf("p%d/b.yaml", i)] = configMap(fmt.Sprintf("pb%d", i), "1")
	}
	r := w.repo("pace", files)
	for i := range apps {
		w.app(fmt.Sprintf("p%d", i), v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: fmt.Sprintf("p%d", i)})
	}
	for i := range apps {
		w.settled(fmt.Sprintf("p%d", i), "")
	}
	refused, pace := c.refused.Load(), w.engine.Pace()
	if refused == 0 || pace.Narrowed == 0 {
		t.Errorf("%d writes were refused, and %d times fewer were sent", refused, pace.Narrowed)
	}
	t.Logf("%d writes refused, %+v", refused, pace)
}
