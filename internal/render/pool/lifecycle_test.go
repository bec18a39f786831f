//go:build linux

package pool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
)

// roles are what this test binary does when a test starts it with that argument.
func roles() map[string]func() {
	return map[string]func(){
		// A parent that tells its worker and waits to be killed.
		"parent": func() {
			p, err := pool.New(context.Background(), pool.Options{})
			if err != nil {
				os.Exit(1)
			}
			out, err := p.Render(context.Background(), evil("process id"))
			if err != nil {
				os.Exit(1)
			}
			_, _ = os.Stdout.WriteString(loot(out) + "\n")
			select {}
		},
		"without landlock": func() { lacking("landlock_create_ruleset") },
		"without seccomp":  func() { lacking("seccomp") },
	}
}

// lacking becomes a worker on a kernel that does not know a system call.
func lacking(call string) {
	absent := seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{{Action: absent, Names: []string{call}}},
	}})
	if err == nil {
		err = unix.Exec("/proc/self/exe", []string{"lockstep", worker.Role}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func loot(out job.Output) string {
	text, _ := out.Objects[0].Object["data"].(map[string]any)["loot"].(string)
	return text
}

// who is the worker that renders for a project.
func who(t *testing.T, p *pool.Pool, project string) int {
	t.Helper()
	in := evil("process id")
	in.Project = project
	out, err := p.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(loot(out))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: does not come", what)
		}
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func alive(p *pool.Pool) int { n, _ := p.Workers(); return n }

func TestAWorkerIsUsedAgain(t *testing.T) {
	p := newPool(t, pool.Options{Renders: 3})
	var seen []int
	for range 7 {
		seen = append(seen, who(t, p, "a"))
	}
	if want := []int{seen[0], seen[0], seen[0], seen[3], seen[3], seen[3], seen[6]}; !slices.Equal(seen, want) || seen[0] == seen[3] || seen[3] == seen[6] {
		t.Errorf("workers %v", seen)
	}
	if _, err := p.Render(t.Context(), evil("panic")); err == nil {
		t.Fatal("no error")
	}
	broken := who(t, p, "a")
	broken2 := job.Input{AppName: "web", Project: "a", Path: "a", Tree: chartTree()}
	broken2.Tree = world()
	broken2.Path = "badchart"
	if _, err := p.Render(t.Context(), broken2); err == nil {
		t.Fatal("no error")
	}
	if who(t, p, "a") == broken {
		t.Error("a worker is used after an error")
	}
}

func TestAWorkerSeesOneProject(t *testing.T) {
	p := newPool(t, pool.Options{Size: 2, Patience: 10 * time.Millisecond})
	var mu sync.Mutex
	owner := map[int]string{}
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			project := fmt.Sprint("p", i%4)
			pid := who(t, p, project)
			mu.Lock()
			defer mu.Unlock()
			if owner[pid] != "" && owner[pid] != project {
				t.Errorf("worker %d renders for %s and %s", pid, owner[pid], project)
			}
			owner[pid] = project
		})
	}
	group.Wait()
	if n := alive(p); n > 2 {
		t.Errorf("%d workers at rest", n)
	}
}

func TestAtRestOneWorkerStaysForAWhile(t *testing.T) {
	p := newPool(t, pool.Options{Size: 3, Spare: 20 * time.Millisecond, Idle: 2 * time.Second})
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { _, _ = p.Render(ctx, evil("wait for ever")) })
	}
	until(t, "three workers", func() bool { _, rendering := p.Workers(); return rendering == 3 })
	stop()
	group.Wait()
	if who(t, p, "a") == who(t, p, "b") {
		t.Error("one worker for two projects")
	}
	until(t, "one worker", func() bool { return alive(p) == 1 })
	rest := time.Now()
	until(t, "no worker", func() bool { return alive(p) == 0 })
	if d := time.Since(rest); d < time.Second {
		t.Errorf("the last one is gone after %s", d)
	}
	if _, err := p.Render(t.Context(), good("a")); err != nil {
		t.Error(err)
	}
}

func TestAWorkerThatIsKilledIsReplaced(t *testing.T) {
	p := newPool(t, pool.Options{})
	pid := who(t, p, "a")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the worker", func() bool { return gone(pid) })
	if again := who(t, p, "a"); again == pid {
		t.Error("the dead render")
	}
	// In the middle of a rendering.
	failed := make(chan error, 1)
	pid = who(t, p, "evil")
	go func() {
		_, err := p.Render(t.Context(), evil("wait for ever"))
		failed <- err
	}()
	until(t, "rendering", func() bool { _, rendering := p.Workers(); return rendering == 1 })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := <-failed
	var f *pool.Failure
	if !errors.As(err, &f) || f.Bound != pool.Lost || !errors.Is(err, job.ErrInterrupted) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error is %v", err)
	}
	if _, err := p.Render(t.Context(), good("evil")); err != nil {
		t.Error(err)
	}
}

func TestCloseEndsTheWorkers(t *testing.T) {
	p := newPool(t, pool.Options{Size: 1})
	pid := who(t, p, "evil")
	failed := make(chan error, 2)
	for range 2 { // one renders, one waits
		go func() {
			_, err := p.Render(t.Context(), evil("wait for ever"))
			failed <- err
		}()
	}
	until(t, "rendering", func() bool { _, rendering := p.Workers(); return rendering == 1 })
	p.Close()
	for range 2 {
		if err := <-failed; err == nil {
			t.Error("no error")
		}
	}
	if !gone(pid) {
		t.Error("the worker lives")
	}
	if _, err := p.Render(t.Context(), good("a")); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("error is %v", err)
	}
}

func TestWorkersEndWithTheirParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "parent")
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	until(t, "the end of the worker", func() bool { return gone(pid) })
}

func TestWithoutAWallNothingStarts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for lack, want := range map[string]string{"without landlock": "the kernel has no Landlock", "without seccomp": "the kernel has no seccomp"} {
		t.Run(lack, func(t *testing.T) {
			o := pool.Options{Command: []string{self, lack}}
			p, err := pool.New(t.Context(), o)
			if err == nil {
				p.Close()
				t.Fatal("it starts")
			}
			if !errors.Is(err, pool.ErrNoSandbox) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--allow-unsandboxed") {
				t.Errorf("error is %v", err)
			}
			t.Log(err)
			o.AllowUnsandboxed = true
			if _, err := newPool(t, o).Render(t.Context(), good("a")); err != nil {
				t.Error(err)
			}
		})
	}
}
