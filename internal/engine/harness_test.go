package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/internal/record"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

func TestMain(m *testing.M) {
	worker.Branch(nil)
	os.Exit(env.Main(m))
}

// world is one engine with a control-plane namespace, a destination namespace and a git server of its own.
type world struct {
	t       *testing.T
	cluster *env.Kube
	client  dynamic.Interface
	control string // namespace of the applications
	dest    string // namespace of what they declare
	git     *gitserver.Server
	data    string
	bounds  pool.Options // of the workers
	workers *pool.Pool
	engine  *engine.Engine
	stores  func()
	metrics *prometheus.Registry
	log     *syncBuffer
	// deaf tells that the test takes wake-ups away, so that the audit at its end may find something.
	deaf    bool
	renders *renders
	// tune changes the engine's options at the next start.
	tune func(*engine.Options)
}

// newWorld starts everything; the engine polls fast, so that tests need no webhook. Worlds share a cluster and nothing else, and
// wait most of the time, so their tests run side by side.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldOn(t, env.Cluster(t))
}

func newWorldOn(t *testing.T, c *env.Kube) *world {
	t.Helper()
	w := &world{t: t, cluster: c, data: t.TempDir(), log: &syncBuffer{}, renders: &renders{}}
	var err error
	if w.client, err = dynamic.NewForConfig(unlimited(c.REST())); err != nil {
		t.Fatal(err)
	}
	w.control, w.dest = env.Namespace(t, c), env.Namespace(t, c)
	if _, err := install.All(t.Context(), w.client, install.Options{Namespace: w.control}); err != nil {
		t.Fatal(err)
	}
	if w.git, err = gitserver.Start(gitserver.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.git.Close() })
	w.start()
	t.Cleanup(func() {
		w.audit()
		w.leave()
		w.stop()
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	return w
}

// ownCluster is a cluster for a test that breaks it.
func ownCluster(t *testing.T) *env.Kube {
	t.Helper()
	return env.NewCluster(t)
}

func unlimited(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.QPS = -1
	return c
}

// start runs an engine on the world's data, as a process would.
func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w.log, nil))
	repositories := repository.NewSet()
	store, err := git.Open(git.Options{Dir: w.data + "/git", Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	charts, err := chart.Open(chart.Options{Dir: w.data + "/charts", Log: log, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		w.t.Fatal(err)
	}
	records, err := record.Open(w.data + "/proofs")
	if err != nil {
		w.t.Fatal(err)
	}
	w.bounds.Log = log
	if w.workers, err = pool.New(context.Background(), w.bounds); err != nil {
		w.t.Fatal(err)
	}
	w.metrics = prometheus.NewRegistry()
	o := engine.Options{
		REST: unlimited(w.cluster.REST()), Namespace: w.control, Repositories: repositories, Records: records,
		Sources: &engine.Sources{Git: store, Charts: charts, Repositories: repositories}, Render: w.workers.Render, Key: bytes.Repeat([]byte{7}, 32),
		PollInterval: time.Second, Audit: engine.AuditOptions{Interval: -1, Settle: 2 * time.Second}, Metrics: engine.NewMetrics(w.metrics), Log: log,
	}
	w.caching(&o)
	if w.tune != nil {
		w.tune(&o)
	}
	w.engine, err = engine.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.engine.Start(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	w.stores = func() {
		w.workers.Close()
		_ = store.Close()
	}
}

// restart runs another engine, on other data where lose says so, with options that change may alter.
func (w *world) restart(lose bool, change func(*engine.Options)) {
	w.t.Helper()
	w.stop()
	if lose {
		w.data = w.t.TempDir()
	}
	w.tune = change
	w.start()
}

func (w *world) stop() {
	if w.engine != nil {
		w.engine.Stop()
		w.stores()
		w.engine = nil
	}
}

func (w *world) repo(name string, files map[string]string) *gitserver.Repo {
	w.t.Helper()
	r, err := w.git.Create(name, files)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) commit(r *gitserver.Repo, files map[string]string) string {
	w.t.Helper()
	sha, err := r.Commit(files, "change")
	if err != nil {
		w.t.Fatal(err)
	}
	return sha
}

// app makes an Application with automated sync, prune and self-heal; change may alter it first.
func (w *world) app(name string, source v1alpha1.ApplicationSource, change ...func(*v1alpha1.Application)) {
	w.t.Helper()
	a := &v1alpha1.Application{}
	a.APIVersion, a.Kind, a.Name, a.Namespace = v1alpha1.GroupVersion().String(), v1alpha1.ApplicationKind, w.real(name), w.control
	a.Spec = v1alpha1.ApplicationSpec{
		Project: "default", Source: &source,
		Destination: v1alpha1.ApplicationDestination{Server: engine.InClusterServer, Namespace: w.dest},
		SyncPolicy:  &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true}},
	}
	for _, c := range change {
		c(a)
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		w.t.Fatal(err)
	}
	delete(u, "status")
	if _, err := w.apps().Create(w.t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// real is the name of an application in the cluster: tests share the cluster, and a tracking mark holds no namespace.
func (w *world) real(name string) string { return name + "-" + w.control[len(w.control)-8:] }

// leave deletes the applications while the engine still runs, so that none stays behind with its finalizer.
func (w *world) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own context has ended
	defer cancel()
	if w.engine == nil || w.apps().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) != nil {
		return
	}
	for ctx.Err() == nil {
		list, err := w.apps().List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return
		}
		<-time.After(20 * time.Millisecond) // between two looks at a condition
	}
}

func manual(a *v1alpha1.Application) { a.Spec.SyncPolicy = nil }

func (w *world) apps() dynamic.ResourceInterface {
	return w.client.Resource(v1alpha1.Applications()).Namespace(w.control)
}

func (w *world) get(name string) *v1alpha1.Application {
	w.t.Helper()
	a := w.find(name)
	if a == nil {
		w.t.Fatalf("application %s does not exist", name)
	}
	return a
}

// find is the Application; nil when there is none.
func (w *world) find(name string) *v1alpha1.Application {
	w.t.Helper()
	u, err := w.apps().Get(w.t.Context(), w.real(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	a := &v1alpha1.Application{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) patchApp(name, patch string) {
	w.t.Helper()
	if _, err := w.apps().Patch(w.t.Context(), w.real(name), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

const patience = 60 * time.Second

// until waits for cond, which says what it still misses.
func (w *world) until(what string, cond func() (string, bool)) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	missing := ""
	for time.Now().Before(deadline) {
		var ok bool
		if missing, ok = cond(); ok {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond): // between two looks at a condition
		case <-w.t.Context().Done():
		}
	}
	w.t.Fatalf("%s: not within %s: %s", what, patience, missing)
}

// settled waits until the application is at commit (any when empty), Synced and Healthy.
func (w *world) settled(name, commit string) *v1alpha1.Application {
	w.t.Helper()
	var app *v1alpha1.Application
	w.until(name+" in step", func() (string, bool) {
		if app = w.find(name); app == nil {
			return "it does not exist", false
		}
		s := app.Status
		return fmt.Sprintf("sync %s at %s, health %+v, conditions %v, operation %s, resources %+v", s.Sync.Status, s.Sync.Revision, s.Health, s.Conditions, operation(app), s.Resources),
			s.Sync.Status == v1alpha1.SyncSynced && s.Health.Status == v1alpha1.HealthHealthy && (commit == "" || s.Sync.Revision == commit)
	})
	return app
}

func operation(a *v1alpha1.Application) string {
	if a.Status.OperationState == nil {
		return "none"
	}
	return string(a.Status.OperationState.Phase) + ": " + a.Status.OperationState.Message
}

// condition waits for a condition of the type whose message holds every part.
func (w *world) condition(name string, t v1alpha1.ApplicationConditionType, parts ...string) string {
	w.t.Helper()
	message := ""
	w.until(fmt.Sprintf("%s with %s", name, t), func() (string, bool) {
		app := w.get(name)
		for _, c := range app.Status.Conditions {
			if c.Type != t {
				continue
			}
			says := true
			for _, p := range parts {
				says = says && strings.Contains(c.Message, p)
			}
			if says {
				message = c.Message
				return "", true
			}
		}
		return fmt.Sprintf("conditions %v, operation %s", app.Status.Conditions, operation(app)), false
	})
	return message
}

func (w *world) resource(apiVersion, plural string) dynamic.ResourceInterface {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.client.Resource(gv.WithResource(plural)).Namespace(w.dest)
}

func (w *world) configMap(name string) (map[string]string, bool) {
	w.t.Helper()
	u, err := w.resource("v1", "configmaps").Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	cm := &corev1.ConfigMap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cm); err != nil {
		w.t.Fatal(err)
	}
	return cm.Data, true
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %q}\n", name, value)
}

func deployment(name, image string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: %[2]q}]}
`, name, image, replicas)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
