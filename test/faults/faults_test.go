package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/local"
)

// fault is one thing that breaks while a new commit is deployed.
type fault struct {
	name string
	// strike breaks it; the function that it gives waits until the fault was felt, and mends it.
	strike func(b *bed) (mend func())
	// after is when it strikes, after a push: at the first happening that matches. Nil strikes before the push.
	after func(n int, h happening) bool
}

func hookMade(_ int, h happening) bool { return h.verb == "added" && h.kind == "Job" }

// TestFaults breaks one thing after the other, each while a commit with hooks, waves and prune is on its way.
func TestFaults(t *testing.T) {
	b := newBed(t, env.NewCluster(t))
	b.app("waves")
	b.app("plain")
	b.app("chart")
	b.converged(b.head())
	for _, group := range [][]fault{clusterFaults(), gitFaults(), ownFaults()} {
		for _, f := range group {
			t.Run(f.name, func(t *testing.T) {
				b.t = t
				b.suffer(f)
			})
		}
	}
}

func (b *bed) suffer(f fault) {
	b.t.Helper()
	b.alive()
	mark := b.seen.mark()
	var mend func()
	var commit string
	if f.after == nil {
		mend = f.strike(b)
		commit = b.push()
	} else {
		commit = b.push()
		b.happens(mark, f.after)
		mend = f.strike(b)
	}
	mend()
	b.converged(commit)
	b.judge(mark)
}

// happens waits for what a fault follows. A process that has ended by itself, since it could not renew its lease on a busy
// machine, is started again, as in converged.
func (b *bed) happens(mark int, after func(int, happening) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	seen := make(chan error, 1)
	go func() {
		_, err := b.seen.wait(ctx, mark, after)
		seen <- err
	}()
	for {
		select {
		case err := <-seen:
			b.must(err)
			return
		case <-b.lockstep.Exited():
			b.alive()
		}
	}
}

func (b *bed) head() string {
	b.t.Helper()
	head, err := b.repo.Resolve("main")
	if err != nil {
		b.t.Fatal(err)
	}
	return head
}

// lasts lets a fault act for a while: how long it lasts is part of the fault, no wait for a condition.
func (b *bed) lasts(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.t.Context().Done():
	}
}

func clusterFaults() []fault {
	api := func(args ...string) func(b *bed) func() {
		return func(b *bed) func() {
			b.cluster.Fault(b.t, append([]string{"api"}, args...)...)
			return func() { b.lasts(3 * time.Second); b.cluster.Fault(b.t, "clear") }
		}
	}
	frozen := func(component string, d time.Duration) func(b *bed) func() {
		return func(b *bed) func() {
			b.cluster.Fault(b.t, "freeze", component)
			return func() { b.lasts(d); b.cluster.Fault(b.t, "thaw", component) }
		}
	}
	return []fault{
		{"API server killed", func(b *bed) func() {
			b.cluster.Fault(b.t, "kill", "kube-apiserver", "--restart-after", "2s")
			return func() {}
		}, hookMade},
		{"API server restarted", func(b *bed) func() {
			b.cluster.Fault(b.t, "restart", "kube-apiserver")
			return func() {}
		}, hookMade},
		{"API server frozen", frozen("kube-apiserver", 4*time.Second), hookMade},
		{"etcd frozen", frozen("etcd", 4*time.Second), hookMade},
		{"etcd slow", func(b *bed) func() {
			return func() {
				for range 5 {
					frozen("etcd", 300*time.Millisecond)(b)()
				}
			}
		}, hookMade},
		{"applications answer 429", api("--kind", "applications.argoproj.io", "--answer", "429"), hookMade},
		{"objects answer 429", api("--kind", "configmaps", "--answer", "429"), nil},
		{"hooks answer 429", api("--kind", "jobs.batch", "--answer", "429"), nil},
		{"objects answer 500", api("--kind", "deployments.apps", "--answer", "500"), nil},
		{"objects time out", api("--kind", "configmaps", "--answer", "timeout"), nil},
		{"watches expired", expire, hookMade},
	}
}

// expire makes every watch of Lockstep end and its place in the history be gone, while it can not look.
func expire(b *bed) func() {
	stopped := b.lockstep.Pid()
	b.signal(stopped, syscall.SIGSTOP)
	return func() {
		b.touch("before the restart")
		b.cluster.Fault(b.t, "restart", "kube-apiserver")
		b.touch("after the restart")
		b.signal(stopped, syscall.SIGCONT)
	}
}

// touch changes an object by hand, often enough that its kind's history moves on; Lockstep has to put it back.
func (b *bed) touch(what string) {
	b.t.Helper()
	maps := b.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(b.dest)
	for i := range 20 {
		patch := fmt.Sprintf(`{"data":{"k":"%s %d"}}`, what, i)
		b.until("steady changed by hand", func(ctx context.Context) error {
			_, err := maps.Patch(ctx, "steady", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "hand"})
			return err
		})
	}
}

func (b *bed) signal(pid int, s syscall.Signal) {
	b.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		b.t.Fatal(err)
	}
}

// until tries until there is no error.
func (b *bed) until(what string, try func(ctx context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("%s: not within %s: %v", what, patience, err)
		case <-time.After(20 * time.Millisecond): // between two looks at a condition
		}
	}
}

func gitFaults() []fault {
	broken := func(f gitserver.Fault) func(b *bed) func() {
		return func(b *bed) func() {
			b.git.Break(f)
			return func() { b.lasts(2 * time.Second); b.git.Break(gitserver.Fault{}) }
		}
	}
	return []fault{
		{"git server down", func(b *bed) func() {
			b.must(b.git.Pause())
			return func() { b.lasts(2 * time.Second); b.must(b.git.Resume()) }
		}, nil},
		{"git server slow", broken(gitserver.Fault{Delay: 1500 * time.Millisecond}), nil},
		{"git server answers 500", broken(gitserver.Fault{Status: 500}), nil},
		{"git server hangs up", broken(gitserver.Fault{Cut: 300}), nil},
		{"corrupt mirror", func(b *bed) func() {
			b.spoil(filepath.Join(b.data(), "git"))
			return func() {}
		}, nil},
		{"force-push", func(b *bed) func() {
			first, err := b.repo.Resolve("main~1")
			b.must(err)
			b.must(b.repo.SetBranch("main", first))
			return func() {}
		}, nil},
		{"deleted branch", func(b *bed) func() {
			head := b.head()
			b.must(b.repo.DeleteBranch("main"))
			b.complained("main")
			b.must(b.repo.SetBranch("main", head))
			return func() {}
		}, nil},
	}
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// spoil overwrites the middle of every file below dir that holds objects.
func (b *bed) spoil(dir string) {
	b.t.Helper()
	spoilt := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "/objects/") {
			return err
		}
		spoilt++
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
		return os.WriteFile(path, []byte("nonsense"), 0o600)
	})
	if err != nil || spoilt == 0 {
		b.t.Fatalf("%d files spoilt: %v", spoilt, err)
	}
}

// complained waits until every application has an error condition with the text.
func (b *bed) complained(text string) {
	b.t.Helper()
	b.until("every application complains of "+text, func(ctx context.Context) error {
		apps, err := b.list(ctx)
		for _, app := range apps {
			found := false
			for _, c := range app.Status.Conditions {
				found = found || c.Type == v1alpha1.ConditionComparisonError && strings.Contains(c.Message, text)
			}
			if !found {
				return fmt.Errorf("%s: %v", app.Name, app.Status.Conditions)
			}
		}
		return err
	})
}

func ownFaults() []fault {
	return []fault{
		{"data directory deleted", func(b *bed) func() {
			// What is written meanwhile keeps a folder from being removed.
			b.until("the data directory is gone", func(context.Context) error { return os.RemoveAll(b.data()) })
			return func() {}
		}, hookMade},
		{"workers killed", killWorkers, nil},
		{"disk full", diskFull, nil},
		{"clock jumps over a pause", frozenProcess, hookMade},
		{"lease lost", loseLease, hookMade},
		{"a second process on the same data", secondOnData, hookMade},
		{"a second process stands by", standby, hookMade},
	}
}

// loseLease gives the lease to somebody else: the process must end by itself. It comes back when the lease is free.
func loseLease(b *bed) func() {
	leases := b.client.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(b.control)
	give := func(holder string) {
		b.until("lease given to "+holder, func(ctx context.Context) error {
			patch := fmt.Sprintf(`{"spec":{"holderIdentity":%q}}`, holder)
			_, err := leases.Patch(ctx, "lockstep", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
	give("thief")
	select {
	case <-b.lockstep.Exited():
	case <-time.After(patience):
		b.t.Fatal("goes on without its lease")
	}
	return func() { give(""); b.start() }
}

func secondOnData(b *bed) func() {
	other := *b
	if err := other.run(b.dir, "lockstep-1"); err == nil {
		_ = other.lockstep.Stop()
		b.t.Error("a second process runs on the same data")
	} else if !strings.Contains(err.Error(), "data") {
		b.t.Errorf("a second process on the same data says: %v", err)
	}
	return func() {}
}

// standby starts a second process with data of its own, and kills the first: the second goes on.
func standby(b *bed) func() {
	dir := b.t.TempDir()
	second := make(chan error, 1)
	other := *b
	go func() { second <- other.run(dir, "lockstep-1") }()
	b.until("the second process stands by", func(context.Context) error {
		if log := local.Tail(filepath.Join(dir, "lockstep.log"), 50); !strings.Contains(log, "standing by") {
			return fmt.Errorf("its log: %s", log)
		}
		return nil
	})
	b.lockstep.Kill()
	return func() {
		b.must(<-second) // it is ready only when it holds the lease
		b.lockstep = other.lockstep
	}
}
