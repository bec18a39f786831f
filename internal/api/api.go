// Package api owns the HTTP API: the routes that Argo CD's clients know, with their paths and JSON shapes, and our additions
// beside them (issue 8). Every route stands in one table and declares what permission it needs; the dispatcher asks for it
// before a handler runs. Handlers translate, the engine decides.
//
// It holds no client of a cluster, knows no flags and no listener: internal/server mounts it.
package api

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/auth"
)

// Authenticator tells who asks. An error says that it is nobody who may be let in.
type Authenticator interface {
	Authenticate(r *http.Request) (auth.Subject, error)
}

// Enforcer tells whether somebody may do something: resources, actions and objects of the policy language of
// argocd-rbac-cm.
type Enforcer interface {
	Allows(s auth.Subject, resource, action, object string) bool
}

// Options of the API. All are required.
type Options struct {
	Authenticator Authenticator
	Enforcer      Enforcer
	// Live is what answers; its State is nil while this process stands by.
	Live func() Live
	// Version of the build.
	Version string
	// Log gets what went wrong on our side.
	Log *slog.Logger
}

// API answers the routes of the table.
type API struct {
	opts  Options
	table []route
	mux   *http.ServeMux
	// closing is closed when streams are to end.
	closing chan struct{}
	closed  sync.Once
}

// New makes the API; nothing runs beside requests.
func New(o Options) *API {
	a := &API{opts: o, mux: http.NewServeMux(), closing: make(chan struct{})}
	a.table = a.routes()
	for i := range a.table {
		rt := &a.table[i]
		a.mux.Handle(rt.method+" "+rt.path, a.serve(rt))
	}
	return a
}

// Close ends the streams under way, so that a server can stop.
func (a *API) Close() { a.closed.Do(func() { close(a.closing) }) }

// ServeHTTP answers what the table has, and refuses everything else in the form that Argo CD's clients read.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if crooked(r.URL.EscapedPath()) {
		a.refuse(w, r, absent("%s: there is nothing here", r.URL.Path))
		return
	}
	h, pattern := a.mux.Handler(r)
	if pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	said := headOnly{header: http.Header{}}
	h.ServeHTTP(&said, r)
	if allow := said.header.Get("Allow"); said.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allow)
		a.refuse(w, r, &problem{http.StatusMethodNotAllowed, codeUnimplemented, r.URL.Path + ": takes " + allow + ", not " + r.Method})
		return
	}
	a.refuse(w, r, absent("%s: there is nothing here", r.URL.Path))
}

// headOnly takes status and header of an answer.
type headOnly struct {
	header http.Header
	status int
}

func (h *headOnly) Header() http.Header         { return h.header }
func (h *headOnly) WriteHeader(status int)      { h.status = status }
func (h *headOnly) Write(p []byte) (int, error) { return len(p), nil }
