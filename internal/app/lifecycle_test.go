package app_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/lockstep-cd/lockstep/internal/app"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/internal/lease"
	"github.com/lockstep-cd/lockstep/test/env"
)

func (p *place) leases() coordination.LeaseInterface {
	p.t.Helper()
	client, err := coordination.NewForConfig(p.rest)
	if err != nil {
		p.t.Fatal(err)
	}
	return client.Leases(p.namespace)
}

func TestSecondProcessOnOneDirectory(t *testing.T) {
	p := newPlace(t)
	o := p.options()
	first := start(t, o)
	o.Lease.Identity = "lockstep-1"
	second, err := app.New(o)
	if err != nil {
		t.Fatal(err)
	}
	want := "--data-dir " + o.DataDir + ": is used by another lockstep serve; each process needs its own"
	if err := second.Start(t.Context()); err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	first.ready()
	// Free again once the first has stopped.
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	start(t, o).ready()
}

func TestStandsByAndFollows(t *testing.T) {
	p := newPlace(t)
	o := p.options()
	o.Lease.Duration = 20 * time.Second // nobody waits for it to run out: the lease is given back
	first := start(t, o)
	first.ready()
	o.Lease.Identity, o.DataDir = "lockstep-1", t.TempDir()
	second := start(t, o)
	second.saysUnready("standing by: lockstep-0 holds the lease")
	if status, body := second.get("/healthz?full=true"); status != 200 || !strings.Contains(body, "standing by for lockstep-0") {
		t.Errorf("a process that stands by: %d %s", status, body)
	}
	if status, body := ask(t, "POST", "http://"+second.Addr()+"/api/webhook", nil, nil); status != 503 {
		t.Errorf("a webhook to a process that stands by: %d %s", status, body)
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	second.ready()
}

// Who loses the lease ends, with the reason, and leaves the lease to the other.
func TestLostLease(t *testing.T) {
	p := newPlace(t)
	o := p.options()
	a, err := app.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(t.Context()) }()
	until(t, "ready", func() (string, bool) {
		err := a.Ready()
		return fmt.Sprint(err), err == nil
	})
	until(t, "the lease is somebody else's", func() (string, bool) {
		l, err := p.leases().Get(t.Context(), "lockstep", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		thief := "thief"
		l.Spec.HolderIdentity = &thief
		_, err = p.leases().Update(t.Context(), l, metav1.UpdateOptions{})
		return "renewed in between", err == nil
	})
	select {
	case err := <-ended:
		if !errors.Is(err, lease.ErrLost) || err.Error() != "the lease is lost: thief holds it" {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it goes on without the lease")
	}
	if err := a.Ready(); err == nil {
		t.Error("it says that it is ready")
	}
	if c, err := net.Dial("tcp", a.Addr()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// A stop ends everything: no goroutine of ours stays, the port, the lease and the directory are free.
func TestStopLeavesNothing(t *testing.T) {
	p := newPlace(t)
	shop := newGuestbook(p)
	o := p.options()
	before := ours()
	process := start(t, o)
	process.ready()
	shop.create()
	shop.inStep(shop.commit(nil))
	shop.remove()
	address := process.Addr()
	began := time.Now()
	if err := process.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	until(t, "no goroutine of ours", func() (string, bool) { // one that has just been waited for may still be seen
		now := ours()
		return strings.Join(now, "\n\n"), len(now) <= len(before)
	})
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("it still listens")
	}
	l, err := p.leases().Get(t.Context(), "lockstep", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := *l.Spec.HolderIdentity; holder != "" {
		t.Errorf("the lease is still %s's", holder)
	}
	start(t, o).ready()
}

// ours are the goroutines that run or were started by code of this module, except the tests'.
func ours() []string {
	buf := make([]byte, 16<<20)
	var found []string
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "lockstep/internal/") && !strings.Contains(g, "app_test.") {
			found = append(found, g)
		}
	}
	return found
}

func TestInterruptedStop(t *testing.T) {
	p := newPlace(t)
	a, err := app.New(p.options())
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	until(t, "ready", func() (string, bool) {
		err := a.Ready()
		return fmt.Sprint(err), err == nil
	})
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("an interrupted process ends with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

// A cluster of its own: it has no kinds of ours at first, and then it does not answer for a while.
func TestClusterIsNotThere(t *testing.T) {
	c := env.NewCluster(t)
	p := placeOn(t, c, "lockstep")
	o := p.options()
	a, err := app.New(o)
	if err != nil {
		t.Fatal(err)
	}
	want := "cluster " + p.rest.Host + ": does not know the kind applications.argoproj.io; run `lockstep install` first"
	if err := a.Run(t.Context()); !errors.Is(err, app.ErrNotInstalled) || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	if _, err := install.All(t.Context(), p.client, install.Options{Namespace: p.namespace}); err != nil {
		t.Fatal(err)
	}
	c.Fault(t, "freeze", "kube-apiserver")
	waiting := start(t, o)
	waiting.saysUnready("the cluster has not answered yet")
	if status, body := waiting.get("/healthz?full=true"); status != 503 || !strings.Contains(body, "does not answer") {
		t.Errorf("full health: %d %s", status, body)
	}
	if status, _ := waiting.get("/healthz"); status != 200 {
		t.Errorf("health: %d", status)
	}
	c.Fault(t, "thaw", "kube-apiserver")
	waiting.ready()
	// Away for longer than the lease lasts: the process ends rather than write without it.
	c.Fault(t, "freeze", "kube-apiserver")
	select {
	case <-waiting.Done():
	case <-time.After(patience):
		t.Fatal("it goes on without the lease")
	}
	if err := waiting.stop(); !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "could not be renewed in time") {
		t.Errorf("ended with %v", err)
	}
}

func TestDataDirectory(t *testing.T) {
	p := newPlace(t)
	o := p.options()
	o.DataDir = filepath.Join(o.DataDir, "deep", "data")
	first := start(t, o)
	key, err := os.ReadFile(filepath.Join(o.DataDir, "key"))
	if err != nil || len(key) != 32 {
		t.Fatalf("key of %d bytes, %v", len(key), err)
	}
	for name, want := range map[string]os.FileMode{".": 0o700, "key": 0o600} {
		info, err := os.Stat(filepath.Join(o.DataDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o, want %o", name, got, want)
		}
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if err := start(t, o).stop(); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(o.DataDir, "key"))
	if err != nil || string(again) != string(key) {
		t.Errorf("the key changed with a restart: %v", err)
	}
	// Damaged: another one is made, and everything is compared once.
	if err := os.WriteFile(filepath.Join(o.DataDir, "key"), key[:7], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(t, o).stop(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(o.DataDir, "key")); err != nil || len(again) != 32 {
		t.Errorf("key of %d bytes, %v", len(again), err)
	}
}
