package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

const (
	// quiet is after how long without an event a stream shows that it lives.
	quiet = 20 * time.Second
	// writeWithin bounds how long one event may take to a listener.
	writeWithin = 20 * time.Second
)

// stream writes one value after the other: as Argo CD does, a line of JSON each, or as server-sent events where the client
// asks for those.
type stream struct {
	c      *call
	mask   mask
	events bool
	ctrl   *http.ResponseController
	// ctx ends with the client, or when the server stops.
	ctx context.Context //nolint:containedctx // a stream lives as long as its request
}

// stream begins an answer that goes on.
func (c *call) stream() (*stream, context.CancelFunc, error) {
	m, err := parseMask(c.query.Get("fields"))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(c.Context())
	go func() {
		defer cancel()
		select {
		case <-c.api.closing:
		case <-ctx.Done():
		}
	}()
	s := &stream{c: c, mask: m, events: strings.Contains(c.Header.Get("Accept"), "text/event-stream"), ctrl: http.NewResponseController(c.w), ctx: ctx}
	h := c.w.Header()
	plain(h)
	if s.events {
		h.Set("Content-Type", "text/event-stream")
	}
	h.Set("X-Accel-Buffering", "no") // a proxy that gathers would hold events back
	_ = s.ctrl.SetReadDeadline(time.Time{})
	s.c.w.WriteHeader(http.StatusOK)
	return s, cancel, s.flush()
}

// send writes one value as {"result": value}; id is where a client that comes back may go on.
func (s *stream) send(value any, id string) error {
	data, err := json.Marshal(s.mask.of(map[string]any{"result": value}))
	if err != nil {
		return fmt.Errorf("%s: event: %w", s.c.route.path, err)
	}
	text := string(data) + "\n"
	if s.events {
		text = "data: " + text + "\n"
		if id != "" {
			text = "id: " + id + "\n" + text
		}
	}
	return s.write(text)
}

// alive shows that there is somebody: a comment, or an empty line.
func (s *stream) alive() error {
	if s.events {
		return s.write(":\n\n")
	}
	return s.write("\n")
}

func (s *stream) write(text string) error {
	_ = s.ctrl.SetWriteDeadline(time.Now().Add(writeWithin))
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) flush() error { return s.ctrl.Flush() }

func (a *API) streamRoutes() []route {
	return []route{{
		method: "GET", path: "/api/v1/stream/applications", summary: "Follow applications",
		needs: some("applications"), stream: true, answer: typeOf[applicationEvent](),
		query: params("name: of one application", "project: one or more projects", "projects: as project", "selector: a label selector",
			"repo: the URL of a source", "appNamespace: the namespace they live in", "resourceVersion: leaves out what is not newer",
			"search: as in the list", "sync: as in the list", "health: as in the list", "cluster: as in the list", "namespace: as in the list"),
		handle: followApplications,
	}}
}

// applicationEvent is one step of the stream of applications.
type applicationEvent struct {
	// Type is ADDED, MODIFIED or DELETED.
	Type        string                `json:"type"`
	Application *v1alpha1.Application `json:"application"`
}

func followApplications(c *call) (any, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	since := c.Header.Get("Last-Event-ID")
	if since == "" {
		since = c.query.Get("resourceVersion")
	}
	from, err := strconv.ParseUint(since, 10, 64)
	if since != "" && err != nil {
		return nil, invalid("resourceVersion is no number")
	}
	feed := c.live.Changes.Follow()
	defer feed.Close()
	s, cancel, err := c.stream()
	if s == nil {
		return nil, err
	}
	defer cancel()
	if err == nil {
		err = c.showAll(s, &f, from)
	}
	for err == nil {
		err = c.showNext(s, feed, &f)
	}
	if s.ctx.Err() == nil {
		c.api.opts.Log.Debug("stream ended", "path", c.URL.Path, "error", err)
	}
	return streamed{}, nil
}

// showAll sends every application that is newer than a version.
func (c *call) showAll(s *stream, f *filter, from uint64) error {
	for _, app := range c.live.State.Applications() {
		if v, err := strconv.ParseUint(app.ResourceVersion, 10, 64); err == nil && v <= from {
			continue
		}
		if !c.follows(f, app) {
			continue
		}
		if err := s.send(applicationEvent{"ADDED", shown(app)}, ""); err != nil {
			return err
		}
	}
	return nil
}

// follows tells whether a stream with a filter shows an application.
func (c *call) follows(f *filter, app *v1alpha1.Application) bool {
	ns := c.query.Get("appNamespace")
	return app != nil && (ns == "" || ns == c.live.Namespace) && f.takes(app) && c.sees(app)
}

// showNext sends the changes that come next, or that there are none for a while.
func (c *call) showNext(s *stream, feed *engine.Feed, f *filter) error {
	ctx, cancel := context.WithTimeout(s.ctx, quiet)
	defer cancel()
	changes := feed.Next(ctx)
	if changes == nil {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if !c.still() {
			return context.Canceled
		}
		return s.alive()
	}
	for _, ch := range changes {
		e := applicationEvent{Type: "MODIFIED", Application: ch.Now}
		was, is := c.follows(f, ch.Old), c.follows(f, ch.Now)
		switch {
		case !was && !is:
			continue
		case !was:
			e.Type = "ADDED"
		case !is:
			e.Type, e.Application = "DELETED", ch.Old
		}
		e.Application = shown(e.Application)
		if err := s.send(e, e.Application.ResourceVersion); err != nil {
			return err
		}
	}
	return nil
}

// still tells whether who listens may still be let in: a session ends, a token is taken back.
func (c *call) still() bool {
	s, err := c.api.opts.Authenticator.Authenticate(c.Request)
	return err == nil && s.Name == c.subject.Name
}
