package faults_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-cd/lockstep/internal/render/worker"
)

// killWorkers kills every worker that the process starts, for as long as the fault lasts: the chart of the content renders for
// longer than it takes to see its worker. What was being rendered is rendered again.
func killWorkers(b *bed) func() {
	parent, stop, killed := b.lockstep.Pid(), make(chan struct{}), make(chan int)
	go func() {
		seen := map[int]bool{}
		defer func() { killed <- len(seen) }()
		for {
			for _, pid := range workersOf(parent) {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					seen[pid] = true
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond): // between two looks
			}
		}
	}()
	return func() {
		b.lasts(5 * time.Second)
		close(stop)
		if n := <-killed; n < 2 {
			b.t.Errorf("%d workers were killed: a rendering whose worker is lost is not tried again", n)
		}
	}
}

// workersOf are the processes that render for parent. Only its own children are looked at, so that none renders to its end
// unseen on a busy machine.
func workersOf(parent int) []int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent)) // the pattern is right
	var list []int
	for _, file := range files {
		children, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(children)) {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if err != nil || !strings.HasSuffix(strings.TrimSuffix(string(line), "\x00"), "\x00"+worker.Role) {
				continue
			}
			if pid, err := strconv.Atoi(child); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}

// diskFull lets Lockstep run on a small disk of its own, and fills it to the last byte.
func diskFull(b *bed) func() {
	small := func(change func(dir string) error) {
		b.must(b.lockstep.Stop())
		b.must(os.MkdirAll(b.data(), 0o755))
		b.must(change(b.data()))
		b.start()
	}
	small(func(dir string) error {
		if err := unix.Mount("none", dir, "tmpfs", 0, "size=64m"); err != nil {
			b.start()
			b.t.Skipf("a disk of its own needs the right to mount: %v", err)
		}
		return nil
	})
	mounted := true
	b.t.Cleanup(func() { // should the fault end early; nothing is started here, the test's context is over
		if mounted {
			_ = unix.Unmount(b.data(), unix.MNT_DETACH)
		}
	})
	b.converged(b.head())
	filler := filepath.Join(b.data(), "filler")
	f, err := os.Create(filler)
	b.must(err)
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, unix.ENOSPC) {
		b.t.Fatal(fmt.Errorf("the disk is not full: %w", err))
	}
	return func() {
		b.lasts(3 * time.Second)
		b.must(os.Remove(filler))
		b.converged(b.head()) // without a restart
		small(func(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) })
		mounted = false
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// frozenProcess stops the process for longer than its lease lasts and its watches live: as on a machine that slept, the clock jumps.
func frozenProcess(b *bed) func() {
	pid := b.lockstep.Pid()
	b.signal(pid, syscall.SIGSTOP)
	return func() { b.lasts(20 * time.Second); b.signal(pid, syscall.SIGCONT) }
}
