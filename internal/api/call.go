package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/auth"
)

// maxBody bounds what a client may send, in bytes; local manifests of a sync are the largest that somebody sends.
const maxBody = 8 << 20

// call is one request, whose permission was asked for.
type call struct {
	*http.Request
	api     *API
	route   *route
	w       http.ResponseWriter
	query   url.Values
	subject auth.Subject
	live    Live
	// app and project are those that the path names.
	app     *v1alpha1.Application
	project *v1alpha1.AppProject
	// sent is the body, read.
	sent any
}

// streamed is what a handler returns that has answered by itself.
type streamed struct{}

// serve makes a handler of a route: who asks, what they may, what they sent, and then the answer.
func (a *API) serve(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, api: a, route: rt, w: w}
		body, err := c.answer()
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		if _, done := body.(streamed); done {
			return
		}
		if err := c.write(body); err != nil {
			a.refuse(w, r, err)
		}
	})
}

func (c *call) answer() (any, error) {
	if err := c.admit(); err != nil {
		return nil, err
	}
	if err := c.take(); err != nil {
		return nil, err
	}
	if err := c.permit(); err != nil {
		return nil, err
	}
	return c.route.handle(c)
}

// admit finds out who asks, and whether this process can answer.
func (c *call) admit() error {
	if c.route.needs.scope != public {
		var err error
		if c.subject, err = c.api.opts.Authenticator.Authenticate(c.Request); err != nil {
			return &problem{http.StatusUnauthorized, codeUnauthenticated, "no session information: sign in, or send a token that is valid"}
		}
	}
	// What another site makes a browser send can not be of this type without being asked for first.
	if kind, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); c.Method != http.MethodGet && c.Method != http.MethodHead && (err != nil || kind != "application/json") {
		return &problem{http.StatusUnsupportedMediaType, codeInvalid, "Content-Type must be application/json"}
	}
	if c.live = c.api.opts.Live(); c.live.State == nil {
		return unavailable("this process stands by or is starting; ask the active one")
	}
	return nil
}

// take reads query and body. What a route does not know is refused by ours, and named by Argo CD's.
func (c *call) take() error {
	var err error
	if c.query, err = url.ParseQuery(c.URL.RawQuery); err != nil {
		return invalid("the query can't be read")
	}
	for name := range c.query {
		if !slices.ContainsFunc(c.route.query, func(p param) bool { return p.name == name }) && name != "fields" {
			if err := c.unknown("parameter " + strconv.Quote(shorten(name))); err != nil {
				return err
			}
		}
	}
	if c.route.body == nil {
		return nil
	}
	return c.read()
}

// unknown refuses, or warns of, something that the route does not know.
func (c *call) unknown(what string) error {
	if c.route.ours {
		return invalid("unknown %s", what)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace("unknown " + what + " is ignored")
	c.w.Header().Add("Warning", `299 - "`+quoted+`"`)
	return nil
}

// permit asks whether the subject may do what the route does.
func (c *call) permit() error {
	need := c.route.needs
	switch need.scope {
	case public, filtered:
		return nil
	case object:
	default:
		return denied() // a route without a permission, which a test keeps from existing
	}
	action := need.action
	if need.refine != nil {
		more, err := need.refine(c)
		if err != nil {
			return err
		}
		action += "/" + more
	}
	name, err := need.object(c)
	if err != nil {
		return err
	}
	if !c.may(need.resource, action, name) {
		return denied()
	}
	return c.settled()
}

// settled completes what object found, once it is allowed to be told.
func (c *call) settled() error {
	if c.app == nil || !c.query.Has("project") {
		return nil
	}
	if c.query.Get("project") != projectOf(c.app) {
		return c.noApplication(c.app.Name)
	}
	return nil
}

func (c *call) may(resource, action, name string) bool {
	return c.api.opts.Enforcer.Allows(c.subject, resource, action, name)
}

// write sends an answer, with the fields that were asked for and a mark of its content.
func (c *call) write(body any) error {
	m, err := parseMask(c.query.Get("fields"))
	if err != nil {
		return err
	}
	data, err := json.Marshal(m.of(body))
	if err != nil {
		return fmt.Errorf("%s %s: answer: %w", c.Method, c.route.path, err)
	}
	h := c.w.Header()
	plain(h)
	if c.Method == http.MethodGet {
		sum := sha256.Sum256(data)
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
		h.Set("ETag", tag)
		h.Set("Cache-Control", "private, no-cache")
		if slices.ContainsFunc(strings.Split(c.Header.Get("If-None-Match"), ","), func(t string) bool {
			return strings.TrimPrefix(strings.TrimSpace(t), "W/") == tag
		}) {
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	_, err = c.w.Write(append(data, '\n'))
	if err != nil {
		c.api.opts.Log.Debug("answer not written", "error", err)
	}
	return nil
}

// plain are the headers of every answer.
func plain(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

// refuse answers an error: what it says to who asked, or that the log has it.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := told(err)
	switch {
	case p != nil:
	case r.Context().Err() != nil:
		return // nobody waits for an answer
	default:
		a.opts.Log.Error("request not answered", "method", r.Method, "path", r.URL.Path, "error", err)
		p = &problem{http.StatusInternalServerError, codeInternal, "this went wrong on our side; the log has the reason"}
	}
	plain(w.Header())
	w.WriteHeader(p.status)
	var out bytes.Buffer
	_ = json.NewEncoder(&out).Encode(failure{p.message, p.code, p.message}) // texts are always written
	if _, err := w.Write(out.Bytes()); err != nil {
		a.opts.Log.Debug("answer not written", "error", err)
	}
}

// shorten keeps what somebody sent from filling an answer.
func shorten(text string) string {
	const longest = 80
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
