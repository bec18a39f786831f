package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-cd/lockstep/internal/server"
	"github.com/lockstep-cd/lockstep/internal/webhook"
)

// pushes takes in events as the engine does, and remembers them.
type pushes struct {
	mu     sync.Mutex
	events []webhook.Event
	panics bool
}

func (p *pushes) Push(e webhook.Event) int {
	if p.panics {
		panic("out of step")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	return 3
}

// running is a server on a free port with what a test can turn.
type running struct {
	t      *testing.T
	server *server.Server
	pushes *pushes
	log    *lines
	ready  atomic.Pointer[string]
	secret func(context.Context) (webhook.Secrets, error)
	idle   atomic.Bool // no engine
	checks []server.Check
}

func start(t *testing.T) *running {
	t.Helper()
	r := &running{t: t, pushes: &pushes{}, log: &lines{}, secret: func(context.Context) (webhook.Secrets, error) { return nil, nil }}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "lockstep_test", Help: "A value."}, func() float64 { return 7 }))
	r.server = server.New(server.Options{
		Listen: "127.0.0.1:0", Version: "v1.2.3", Metrics: registry,
		Pusher: func() server.Pusher {
			if r.idle.Load() {
				return nil
			}
			return r.pushes
		},
		Secrets: func(ctx context.Context) (webhook.Secrets, error) { return r.secret(ctx) },
		Ready: func() error {
			if why := r.ready.Load(); why != nil {
				return errors.New(*why)
			}
			return nil
		},
		Checks: func(context.Context) []server.Check { return r.checks },
		Log:    slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err := r.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the test's own context has ended
		defer cancel()
		if err := r.server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

// ask sends a request and gives status and body back.
func (r *running) ask(method, path string, body string, header map[string]string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.server.Addr()+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

// want fails unless the answer has the status and, as JSON, the fields.
func (r *running) want(status int, fields map[string]any, method, path, body string, header map[string]string) {
	r.t.Helper()
	got, text, h := r.ask(method, path, body, header)
	if got != status {
		r.t.Errorf("%s %s: %d %s, want %d", method, path, got, text, status)
	}
	if kind := h.Get("Content-Type"); kind != "application/json" {
		r.t.Errorf("%s %s: content type %s", method, path, kind)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		r.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	if diff := cmp.Diff(fields, answer); diff != "" {
		r.t.Errorf("%s %s (-want +got):\n%s", method, path, diff)
	}
}

func refusal(status int, message string) map[string]any {
	return map[string]any{"error": message, "message": message, "code": float64(status)}
}

const push = `{"ref":"refs/heads/main","after":"0123456789012345678901234567890123456789",
	"repository":{"clone_url":"https://git.example.com/shop.git","default_branch":"main"}}`

func pushHeader() map[string]string {
	return map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "push"}
}

func signed(secret, body string) map[string]string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, body) // a hash takes every write
	h := pushHeader()
	h["X-Hub-Signature-256"] = "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return h
}

func TestPush(t *testing.T) {
	r := start(t)
	r.want(200, map[string]any{"applications": 3.0}, "POST", "/api/webhook", push, pushHeader())
	if len(r.pushes.events) != 1 || !slices.Equal(r.pushes.events[0].Refs, []string{"refs/heads/main"}) {
		t.Errorf("events %+v", r.pushes.events)
	}
	r.want(200, map[string]any{"ignored": "ping"}, "POST", "/api/webhook", "{}", map[string]string{"X-GitHub-Event": "ping"})
	r.want(400, refusal(400, "nothing in the request tells who sent it; docs/webhooks.md lists the senders"), "POST", "/api/webhook", push, nil)
	if len(r.pushes.events) != 1 {
		t.Errorf("%d events, want 1", len(r.pushes.events))
	}
}

func TestSignature(t *testing.T) {
	r := start(t)
	r.secret = func(context.Context) (webhook.Secrets, error) {
		return webhook.Secrets{"webhook.github.secret": "hush"}, nil
	}
	r.want(200, map[string]any{"applications": 3.0}, "POST", "/api/webhook", push, signed("hush", push))
	r.want(401, refusal(401, "the signature does not match the secret that is configured"), "POST", "/api/webhook", push, signed("loud", push))
	r.want(401, refusal(401, "a secret is configured and the event is not signed; set the same secret at the sender"),
		"POST", "/api/webhook", push, pushHeader())
	if len(r.pushes.events) != 1 {
		t.Errorf("%d events, want 1", len(r.pushes.events))
	}
}

// An event must not be taken unsigned because the secret could not be read.
func TestSecretIsNotReadable(t *testing.T) {
	r := start(t)
	r.secret = func(context.Context) (webhook.Secrets, error) { return nil, errors.New("the API server is away") }
	r.want(503, refusal(503, "the webhook secrets can't be read now; send the event again"), "POST", "/api/webhook", push, pushHeader())
	if len(r.pushes.events) != 0 {
		t.Error("the event was taken")
	}
	if !strings.Contains(r.log.String(), "the API server is away") {
		t.Errorf("the log does not say why:\n%s", r.log)
	}
}

func TestStandingBy(t *testing.T) {
	r := start(t)
	r.idle.Store(true)
	r.want(503, refusal(503, "this process stands by or is starting; send the event again to the active one"),
		"POST", "/api/webhook", push, pushHeader())
	why := "standing by: lockstep-1 holds the lease"
	r.ready.Store(&why)
	r.want(503, refusal(503, why), "GET", "/readyz", "", nil)
	r.want(200, map[string]any{"status": "ok"}, "GET", "/healthz", "", nil)
	r.ready.Store(nil)
	r.want(200, map[string]any{"status": "ready"}, "GET", "/readyz", "", nil)
}

func TestFullHealth(t *testing.T) {
	r := start(t)
	r.checks = []server.Check{{Name: "cluster", State: "answers"}, {Name: "lease", State: "held"}}
	r.want(200, map[string]any{"status": "ok", "checks": map[string]any{"cluster": "answers", "lease": "held"}}, "GET", "/healthz?full=true", "", nil)
	r.checks[0].Err = errors.New("does not answer")
	r.want(503, map[string]any{"status": "failing", "checks": map[string]any{"cluster": "does not answer", "lease": "held"}},
		"GET", "/healthz?full=true", "", nil)
	r.want(200, map[string]any{"status": "ok"}, "GET", "/healthz?full=false", "", nil)
	r.want(400, refusal(400, "full is neither true nor false"), "GET", "/healthz?full=perhaps", "", nil)
}

func TestWhatNoRouteTakes(t *testing.T) {
	r := start(t)
	r.want(404, refusal(404, "/api/v9/none: there is nothing here"), "GET", "/api/v9/none", "", nil)
	r.want(405, refusal(405, "/api/webhook: takes POST, not GET"), "GET", "/api/webhook", "", nil)
	if status, _, _ := r.ask("HEAD", "/healthz", "", nil); status != 200 {
		t.Errorf("HEAD: %d", status)
	}
}

func TestVersionAndMetrics(t *testing.T) {
	r := start(t)
	r.want(200, map[string]any{"Version": "v1.2.3"}, "GET", "/api/version", "", nil)
	if status, text, _ := r.ask("GET", "/metrics", "", nil); status != 200 || !strings.Contains(text, "lockstep_test 7") {
		t.Errorf("%d %s", status, text)
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	r := start(t)
	r.pushes.panics = true
	r.want(500, refusal(500, "this went wrong on our side; the log has the reason"), "POST", "/api/webhook", push, pushHeader())
	if !strings.Contains(r.log.String(), "out of step") {
		t.Errorf("the log does not say why:\n%s", r.log)
	}
	r.want(200, map[string]any{"status": "ok"}, "GET", "/healthz", "", nil)
}

func TestBodyIsTooLarge(t *testing.T) {
	r := start(t)
	body := bytes.Repeat([]byte("x"), webhook.MaxBody+1)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.server.Addr()+"/api/webhook", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-GitHub-Event", "push")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%s", resp.Status)
	}
}

func TestRequestsAreLoggedWithoutTheirQuery(t *testing.T) {
	r := start(t)
	_, _, _ = r.ask("GET", "/healthz?token=abcdef", "", nil)
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(r.log.String(), `"status":200`) { // the line comes after the answer
		if time.Now().After(deadline) {
			t.Fatalf("no line in the log:\n%s", r.log)
		}
		<-time.After(time.Millisecond)
	}
	if text := r.log.String(); !strings.Contains(text, `"msg":"request"`) || strings.Contains(text, "abcdef") {
		t.Errorf("log:\n%s", text)
	}
}

func TestAddressInUse(t *testing.T) {
	r := start(t)
	other := server.New(server.Options{Listen: r.server.Addr(), Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	err := other.Start(t.Context())
	if err == nil || err.Error() != "--listen "+r.server.Addr()+": bind: address already in use" {
		t.Errorf("got %v", err)
	}
}

// A request that has begun is answered; one that does not end is cut off in time.
func TestStopLetsRequestsEnd(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	r := start(t)
	r.secret = func(context.Context) (webhook.Secrets, error) { close(began); <-finish; return nil, nil }
	answered := make(chan int, 1)
	go func() {
		status, _, _ := r.ask("POST", "/api/webhook", push, pushHeader())
		answered <- status
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- r.server.Stop(context.WithoutCancel(t.Context())) }()
	for { // until nobody listens any more
		c, err := net.Dial("tcp", r.server.Addr())
		if err != nil {
			break
		}
		c.Close()
	}
	close(finish)
	if status := <-answered; status != 200 {
		t.Errorf("answered %d", status)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopIsBounded(t *testing.T) {
	r := start(t)
	conn, err := net.Dial("tcp", r.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A request whose body never comes.
	if _, err := io.WriteString(conn, "POST /api/webhook HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	r.secret = func(context.Context) (webhook.Secrets, error) { return nil, nil }
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = r.server.Stop(ctx) // an error when the request had arrived by then
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the server did not stop")
	}
}

// lines is a log that a test may read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
