package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/lease"
	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

const patience = 30 * time.Second

// holder is one process that wants the lease.
type holder struct {
	*lease.Lease
	t *testing.T
	// working is closed when work has begun, ended when Hold has returned err.
	working, ended   chan struct{}
	err              error
	stop             context.CancelFunc
	began, workEnded time.Time
}

// hold starts a process that works until its context ends.
func hold(t *testing.T, o lease.Options) *holder {
	t.Helper()
	if o.Duration == 0 {
		o.Duration = 3 * time.Second
	}
	o.Name, o.Log = "lockstep", slog.New(slog.NewTextHandler(t.Output(), nil))
	l, err := lease.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h := &holder{Lease: l, t: t, working: make(chan struct{}), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(h.ended)
		h.err = l.Hold(ctx, func(ctx context.Context) error {
			h.began = time.Now()
			close(h.working)
			<-ctx.Done()
			h.workEnded = time.Now()
			return nil
		})
	}()
	t.Cleanup(h.leave)
	return h
}

func (h *holder) leave() {
	h.stop()
	<-h.ended
}

func (h *holder) await(what string, c <-chan struct{}) {
	h.t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		h.t.Fatalf("%s: not within %s; lease %+v", what, patience, h.State())
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func place(t *testing.T) (*rest.Config, string) {
	t.Helper()
	c := env.Cluster(t)
	config := c.REST()
	config.QPS = -1
	return config, env.Namespace(t, c)
}

func leases(t *testing.T, config *rest.Config, namespace string) coordination.LeaseInterface {
	t.Helper()
	client, err := coordination.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Leases(namespace)
}

func TestSecondStandsByAndFollowsAtOnce(t *testing.T) {
	config, namespace := place(t)
	// A duration that nobody waits for here: the successor has the lease because it was given back.
	first := hold(t, lease.Options{REST: config, Namespace: namespace, Identity: "first", Duration: 60 * time.Second})
	first.await("first works", first.working)
	second := hold(t, lease.Options{REST: config, Namespace: namespace, Identity: "second"})
	until(t, "second sees the holder", func() bool { return second.State().Holder == "first" })
	if second.State().Held {
		t.Error("second holds a lease that first holds")
	}
	first.leave()
	if first.err != nil {
		t.Errorf("first ended with %v", first.err)
	}
	second.await("second works", second.working)
	if s := second.State(); !s.Held || s.Holder != "second" {
		t.Errorf("second works, and its state is %+v", s)
	}
	found, err := leases(t, config, namespace).Get(t.Context(), "lockstep", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *found.Spec.LeaseTransitions; got != 1 {
		t.Errorf("%d transitions, want 1", got)
	}
}

func TestALeaseRunsOut(t *testing.T) {
	config, namespace := place(t)
	var broken atomic.Bool
	first := hold(t, lease.Options{REST: breakable(config, &broken), Namespace: namespace, Identity: "first"})
	first.await("first works", first.working)
	second := hold(t, lease.Options{REST: config, Namespace: namespace, Identity: "second"})
	until(t, "second sees the holder", func() bool { return second.State().Holder == "first" })
	broken.Store(true)
	first.await("first gives up", first.ended)
	if !errors.Is(first.err, lease.ErrLost) || first.State().Held {
		t.Errorf("first ended with %v, state %+v, want ErrLost", first.err, first.State())
	}
	second.await("second works", second.working)
	if second.began.Before(first.workEnded) {
		t.Errorf("second began %s before first had ended", first.workEnded.Sub(second.began))
	}
}

func TestRestartedProcessTakesItsOwnLease(t *testing.T) {
	config, namespace := place(t)
	o := lease.Options{REST: config, Namespace: namespace, Identity: "lockstep-0", Duration: 300 * time.Second}
	// The first process is killed: nothing is given back. Its place is taken by one whose requests no longer arrive.
	var broken atomic.Bool
	killed := o
	killed.REST = breakable(config, &broken)
	first := hold(t, killed)
	first.await("first works", first.working)
	broken.Store(true)
	first.leave()
	again := hold(t, o)
	again.await("the restarted process works", again.working)
}

func TestTwoProcessesOfOneName(t *testing.T) {
	config, namespace := place(t)
	first := hold(t, lease.Options{REST: config, Namespace: namespace, Identity: "same"})
	first.await("first works", first.working)
	second := hold(t, lease.Options{REST: config, Namespace: namespace, Identity: "same"})
	second.await("second works", second.working)
	first.await("first gives up", first.ended)
	if !errors.Is(first.err, lease.ErrLost) || !strings.Contains(first.err.Error(), "another process has the same identity same") {
		t.Errorf("first ended with %v", first.err)
	}
	if !second.State().Held {
		t.Error("second lost the lease with first")
	}
}

func TestLeaseTakenAway(t *testing.T) {
	config, namespace := place(t)
	h := hold(t, lease.Options{REST: config, Namespace: namespace, Identity: "first"})
	h.await("work begins", h.working)
	client := leases(t, config, namespace)
	until(t, "the lease is somebody else's", func() bool {
		found, err := client.Get(t.Context(), "lockstep", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		thief := "thief"
		found.Spec.HolderIdentity = &thief
		_, err = client.Update(t.Context(), found, metav1.UpdateOptions{})
		return err == nil
	})
	h.await("work ends", h.ended)
	if !errors.Is(h.err, lease.ErrLost) || !strings.Contains(h.err.Error(), "thief holds it") {
		t.Errorf("ended with %v", h.err)
	}
	found, err := client.Get(t.Context(), "lockstep", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *found.Spec.HolderIdentity != "thief" {
		t.Errorf("the lease is %s's, want it left alone", *found.Spec.HolderIdentity)
	}
}

func TestErrorOfWorkGivesTheLeaseBack(t *testing.T) {
	config, namespace := place(t)
	l, err := lease.New(lease.Options{
		REST: config, Namespace: namespace, Name: "lockstep", Identity: "first", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := l.Hold(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	found, err := leases(t, config, namespace).Get(t.Context(), "lockstep", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *found.Spec.HolderIdentity; got != "" {
		t.Errorf("the lease is still %s's", got)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]lease.Options{
		"identity":      {REST: &rest.Config{}},
		"500ms":         {REST: &rest.Config{}, Identity: "a", Duration: 500 * time.Millisecond},
		"whole seconds": {REST: &rest.Config{}, Identity: "a", Duration: 1500 * time.Millisecond},
		"lease: ":       {REST: &rest.Config{Host: "https://["}, Identity: "a"},
	} {
		if _, err := lease.New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// breakable is a way to the cluster that a test can cut.
func breakable(c *rest.Config, broken *atomic.Bool) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return cut{next, broken} })
	return c
}

type cut struct {
	next   http.RoundTripper
	broken *atomic.Bool
}

func (c cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.broken.Load() {
		<-r.Context().Done() // as when packets are lost: no answer at all
		return nil, r.Context().Err()
	}
	return c.next.RoundTrip(r)
}
