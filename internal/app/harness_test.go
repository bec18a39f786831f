package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/app"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) {
	worker.Branch(nil)
	os.Exit(env.Main(m))
}

const patience = 90 * time.Second

// place is a namespace that knows our kinds.
type place struct {
	t         *testing.T
	rest      *rest.Config
	client    dynamic.Interface
	namespace string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	c := env.Cluster(t)
	p := placeOn(t, c, env.Namespace(t, c))
	if _, err := install.All(t.Context(), p.client, install.Options{Namespace: p.namespace}); err != nil {
		t.Fatal(err)
	}
	return p
}

func placeOn(t *testing.T, c *env.Kube, namespace string) *place {
	t.Helper()
	p := &place{t: t, rest: c.REST(), namespace: namespace}
	p.rest.QPS = -1
	var err error
	if p.client, err = dynamic.NewForConfig(p.rest); err != nil {
		t.Fatal(err)
	}
	return p
}

// options are those of a process that nothing else disturbs.
func (p *place) options() app.Options {
	return app.Options{
		REST: p.rest, Namespace: p.namespace, DataDir: p.t.TempDir(), Listen: "127.0.0.1:0",
		Lease: app.LeaseOptions{Identity: "lockstep-0", Duration: 3 * time.Second}, Version: "v0.0.0-test",
	}
}

// process is an App that runs.
type process struct {
	*app.App
	t   *testing.T
	log *lines
}

// start starts a process; it is stopped with the test at the latest.
func start(t *testing.T, o app.Options) *process {
	t.Helper()
	p := &process{t: t, log: &lines{}}
	o.Log = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if p.App, err = app.New(o); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.App != nil {
			_ = p.stop() // the test has seen what it wanted to
		}
		if t.Failed() {
			t.Log(p.log)
		}
	})
	return p
}

// stop stops the process before the test ends.
func (p *process) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own context may have ended
	defer cancel()
	a := p.App
	p.App = nil // the end of the test has nothing to stop any more
	return a.Stop(ctx)
}

// get asks the process; status 0 when it does not answer.
func (p *process) get(path string) (int, string) {
	p.t.Helper()
	return ask(p.t, "GET", "http://"+p.Addr()+path, nil, nil)
}

func ask(t *testing.T, method, url string, body []byte, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// saysUnready waits until /readyz refuses with the text.
func (p *process) saysUnready(text string) {
	p.t.Helper()
	until(p.t, "/readyz says "+text, func() (string, bool) {
		status, body := p.get("/readyz")
		return body, status == http.StatusServiceUnavailable && strings.Contains(body, text)
	})
}

func (p *process) ready() {
	p.t.Helper()
	until(p.t, "/readyz", func() (string, bool) {
		status, body := p.get("/readyz")
		return body, status == http.StatusOK
	})
}

// until waits for a condition that says what it still misses.
func until(t *testing.T, what string, holds func() (string, bool)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		missing, ok := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %s", what, patience, missing)
		}
	}
}

func (p *place) apps() dynamic.ResourceInterface {
	return p.client.Resource(v1alpha1.Applications()).Namespace(p.namespace)
}

// application reads one; nil when there is none.
func (p *place) application(name string) *v1alpha1.Application {
	p.t.Helper()
	u, err := p.apps().Get(p.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		p.t.Fatal(err)
	}
	a := &v1alpha1.Application{}
	if err := json.Unmarshal(data, a); err != nil {
		p.t.Fatal(err)
	}
	return a
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
