package trial

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/bench/floor"
	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/observe"
	"github.com/lockstep-cd/lockstep/bench/usage"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/local"
)

// TestMain is the helper processes, too: they start this binary again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		var err error
		switch os.Args[1] {
		case FloorRole:
			err = floor.Main(context.Background(), os.Stdin, os.Stdout)
		case observe.Role:
			err = observe.Main(context.Background(), os.Stdin, os.Stdout)
		default:
			os.Exit(env.Main(m))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(env.Main(m))
}

// bed is a cluster with observer, and a trial for it.
type bed struct {
	*trial
	cluster  *cluster
	observer *observe.Remote
}

func newBed(t *testing.T) *bed {
	t.Helper()
	k := env.NewCluster(t)
	client, err := kube.Client(k.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{cluster: &cluster{Cluster: &local.Cluster{Kubeconfig: k.Kubeconfig()}, client: client}}
	b.trial = &trial{Options: Options{
		Limit: time.Minute, Progress: t.Output(),
		Spec: workload.Spec{
			Applications: 20, Kinds: workload.DefaultKinds(), Namespaces: 3, ControlNamespace: "argocd",
			RepoURL: "http://127.0.0.1/none.git", Revision: "0123456789012345678901234567890123456789",
		},
	}}
	if err := b.cluster.prepare(t.Context(), b.Spec); err != nil {
		t.Fatal(err)
	}
	if b.observer, err = observe.Start(t.Context(), observe.Config{Kubeconfig: k.Kubeconfig(), Spec: b.Spec}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.observer.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// The floor comes into step, and observer, sampler and counters agree with what it did.
func TestFloorComesIntoStep(t *testing.T) {
	b := newBed(t)
	writer, err := startWriter(floor.Config{Kubeconfig: b.cluster.Kubeconfig, Spec: b.Spec})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := writer.Stop(); err != nil {
			t.Error(err)
		}
	}()
	sampler := usage.Watch(t.Context(), writer.PID())
	defer sampler.Stop()
	o, err := b.clock(t.Context(), setup{cluster: b.cluster, observer: b.observer, writer: writer, sampler: sampler})
	if err != nil {
		t.Fatal(err)
	}
	// An Application, its status and four objects each; events of the control plane may be beside them.
	for name, want := range map[string]int64{
		"applications.argoproj.io": 40, "deployments.apps": 20, "services": 20, "serviceaccounts": 20, "ingresses.networking.k8s.io": 20,
	} {
		if o.writes[name] != want {
			t.Errorf("%d writes of %s, want %d", o.writes[name], name, want)
		}
	}
	if o.wall <= 0 || o.cpu <= 0 || o.memory < 1<<20 || o.statusSize < 1000 {
		t.Errorf("outcome %+v", o)
	}
	t.Log(o)

	b.abandon(t)
	b.putBack(t)
}

// abandon asks the observer and does not wait for its answers; the next question gets its own.
func (b *bed) abandon(t *testing.T) {
	t.Helper()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		if _, err := b.observer.Counts(gone); err == nil {
			t.Log("answered before it was looked at whether anybody waits")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if c, err := b.observer.Counts(ctx); err != nil || c.Applications < 40 || c.Objects < 80 {
		t.Errorf("counts %+v, %v", c, err)
	}
}

// putBack changes an object of each kind by hand and applies it again, which the observer must see.
func (b *bed) putBack(t *testing.T) {
	t.Helper()
	r := &running{trial: b.trial, cluster: b.cluster, observer: b.observer}
	r.HandChanges = 8
	targets, err := r.targets()
	if err != nil {
		t.Fatal(err)
	}
	for n, target := range targets[:4] {
		if want := b.Spec.Kinds[n]; target.kind.Name != want {
			t.Fatalf("target %d is a %s, want a %s", n, target.kind.Name, want)
		}
		// Without Lockstep nothing is put back.
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := r.changeByHand(ctx, target); err == nil {
			t.Errorf("%s: put back without anybody who does", target.kind.Kind)
		}
		cancel()
		b.applyAgain(t, target)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		back, err := b.observer.PutBack(ctx)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v; %s", target.kind.Kind, err, b.observer.Progress().Waiting)
		}
		if back.Application != target.application || back.Kind != target.kind.Name || !back.Right.After(back.Wrong) {
			t.Errorf("put back %+v, want application %d", back, target.application)
		}
	}
}

func (b *bed) applyAgain(t *testing.T, target target) {
	t.Helper()
	files, err := b.Spec.Files(target.application, workload.FirstVersion)
	if err != nil {
		t.Fatal(err)
	}
	text := files[b.Spec.Path(target.application)+"/"+target.kind.Name+".yaml"]
	err = b.cluster.client.Patch(types.ApplyYAMLPatchType).
		AbsPath(target.kind.ObjectPath(b.Spec.Namespace(target.application), b.Spec.Name(target.application))).
		Param("fieldManager", "floor").Param("force", "true").Body([]byte(text)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTargetsAreDifferentObjects(t *testing.T) {
	for _, c := range []struct{ applications, changes, want int }{{1000, 200, 200}, {10, 200, 40}, {150, 200, 200}, {200, 200, 200}} {
		r := &running{trial: &trial{Options: Options{
			HandChanges: c.changes, Spec: workload.Spec{Applications: c.applications, Kinds: workload.DefaultKinds(), Namespaces: 1},
		}}}
		targets, err := r.targets()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, target := range targets {
			seen[fmt.Sprint(target.application, target.kind.Name)] = true
		}
		if len(seen) != c.want {
			t.Errorf("%d applications: %d different objects, want %d", c.applications, len(seen), c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	got := []float64{percentile(values, 50), percentile(values, 99), percentile(values, 1), percentile(nil, 50)}
	if diff := cmp.Diff([]float64{3, 5, 1, 0}, got); diff != "" {
		t.Error(diff)
	}
}
