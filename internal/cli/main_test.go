package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/client/direct"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) {
	worker.Branch(nil)
	os.Exit(env.Main(m))
}

// now is the clock of every command in tests.
func now() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

// result is what a command left.
type result struct {
	stdout, stderr string
	code           int
}

// output is a stream that a test may read while a command writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// lockstep runs the real root command, without a terminal.
func lockstep(args ...string) result {
	var out, errs output
	code := cli.Run(context.Background(), cli.Options{Out: &out, Err: &errs, Now: now}, args)
	return result{stdout: out.String(), stderr: errs.String(), code: code}
}

// want fails the test unless the command ended with code and told each of the texts.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", r.code, code, r.stdout, r.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("no %q in\nstdout:\n%s\nstderr:\n%s", text, r.stdout, r.stderr)
		}
	}
}

// cluster is a namespace of the real API server, in which the test itself plays the controller.
type cluster struct {
	kubeconfig, namespace string
	apps                  dynamic.ResourceInterface
	client                *direct.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	shared := env.Cluster(t)
	namespace := env.Namespace(t, shared)
	dyn, err := dynamic.NewForConfig(shared.REST())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.CRDs(t.Context(), dyn, install.Options{}); err != nil {
		t.Fatal(err)
	}
	c, err := direct.New(shared.REST())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{
		kubeconfig: shared.Kubeconfig(), namespace: namespace, client: c,
		apps: dyn.Resource(v1alpha1.Applications()).Namespace(namespace),
	}
}

// args adds the way to the cluster.
func (c *cluster) args(args []string) []string {
	return append(args, "--kubeconfig", c.kubeconfig, "--namespace", c.namespace)
}

func (c *cluster) lockstep(args ...string) result { return lockstep(c.args(args)...) }

// start runs a command beside the test, which ends it at the latest when it is over itself.
func (c *cluster) start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.code = cli.Run(ctx, cli.Options{Out: &r.out, Err: &r.errs, Now: now}, c.args(args))
	}()
	t.Cleanup(func() { r.end() })
	return r
}

// running is a command that has not ended.
type running struct {
	out, errs output
	stop      context.CancelFunc
	done      chan struct{}
	code      int
}

// end interrupts the command and returns what it left.
func (r *running) end() result {
	r.stop()
	return r.wait()
}

func (r *running) wait() result {
	<-r.done
	return result{stdout: r.out.String(), stderr: r.errs.String(), code: r.code}
}

// until waits for a condition, for a minute at most.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// create makes an application with the status that change gives it.
func (c *cluster) create(t *testing.T, name string, change func(*v1alpha1.Application)) {
	t.Helper()
	app := &v1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.ApplicationKind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace},
		Spec: v1alpha1.ApplicationSpec{
			Project:     "default",
			Source:      &v1alpha1.ApplicationSource{RepoURL: "https://git.example/shop.git", Path: "deploy", TargetRevision: "main"},
			Destination: v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: "shop"},
		},
	}
	if change != nil {
		change(app)
	}
	data, err := json.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	if _, err := c.apps.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// healthy gives app a status in which all is fine.
func healthy(app *v1alpha1.Application) {
	app.Status.Sync = v1alpha1.SyncStatus{
		Status: v1alpha1.SyncSynced, Revision: "4be0c11d5d6e7f8090a1b2c3d4e5f60718293a4b",
		ComparedTo: v1alpha1.ComparedTo{Source: *app.Spec.Source, Destination: app.Spec.Destination},
	}
	app.Status.Health = v1alpha1.AppHealthStatus{Status: v1alpha1.HealthHealthy}
}

// patch merges fields into an application, as the controller does.
func (c *cluster) patch(t *testing.T, name string, fields map[string]any) {
	t.Helper()
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.apps.Patch(t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// asked waits for an operation on an application and returns it.
func (c *cluster) asked(t *testing.T, name string) *v1alpha1.Operation {
	t.Helper()
	var op *v1alpha1.Operation
	until(t, "an operation on "+name, func() bool {
		app, err := c.client.Get(t.Context(), client.Ref{Namespace: c.namespace, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		op = app.Operation
		return op != nil
	})
	return op
}

// carry writes where the operation stands; the request itself is cleared.
func (c *cluster) carry(t *testing.T, name string, state v1alpha1.OperationState) {
	t.Helper()
	if state.StartedAt.IsZero() {
		state.StartedAt = metav1.NewTime(now())
	}
	c.patch(t, name, map[string]any{"operation": nil, "status": map[string]any{"operationState": state}})
}
