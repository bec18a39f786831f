//go:build linux

package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// hostile is the renderer of the tests' workers: it stands for a template that has found a hole in a library, and does
// itself what the application's name says. Any other name is rendered as usual.
func hostile(ctx context.Context, tool v1alpha1.ApplicationSourceType, in job.Input) (job.Output, error) {
	name, ok := strings.CutPrefix(in.AppName, "hostile:")
	if !ok {
		return render.Run(ctx, tool, in)
	}
	if try := tries()[name]; try != nil {
		return job.Output{}, try()
	}
	if loot := looters()[name]; loot != nil {
		return job.Output{Objects: []manifest.Object{{Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "loot"}, "data": map[string]any{"loot": loot(in)},
		}}}}}, nil
	}
	crimes()[name]()
	return job.Output{}, errors.New("it went on as if nothing had happened")
}

// succeeded is what a try returns that should have been stopped.
func succeeded(what string, err error) error {
	if err == nil {
		return fmt.Errorf("%s: succeeded", what)
	}
	return err
}

// tries must each end with EPERM.
func tries() map[string]func() error {
	return map[string]func() error{
		"read a file": func() error { _, err := os.ReadFile("/etc/passwd"); return succeeded("read", err) },
		"read the environment of the parent": func() error {
			_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
			return succeeded("read", err)
		},
		"list a folder": func() error { _, err := os.ReadDir("/"); return succeeded("list", err) },
		"look at a file": func() error {
			return succeeded("stat", unix.Stat("/etc/passwd", &unix.Stat_t{}))
		},
		"write a file":  func() error { return succeeded("write", os.WriteFile("/tmp/loot", nil, 0o600)) },
		"remove a file": func() error { return succeeded("unlink", unix.Unlink("/tmp/loot")) },
		"connect":       func() error { _, err := net.Dial("tcp", "127.0.0.1:1"); return succeeded("dial", err) },
		"listen":        func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return succeeded("listen", err) },
		"open a socket": func() error {
			_, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return succeeded("socket", err)
		},
		"open a netlink": func() error {
			_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
			return succeeded("socket", err)
		},
		"pair sockets": func() error {
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return succeeded("socketpair", err)
		},
		"run a program":     func() error { return succeeded("run", exec.Command("/bin/true").Run()) },
		"become a program":  func() error { return unix.Exec("/bin/true", []string{"true"}, nil) },
		"fork":              func() error { return raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) },
		"trace the parent":  func() error { return succeeded("ptrace", unix.PtraceAttach(os.Getppid())) },
		"signal the parent": func() error { return succeeded("kill", unix.Kill(os.Getppid(), 0)) },
		"signal a thread of the parent": func() error {
			return succeeded("tgkill", unix.Tgkill(os.Getppid(), os.Getppid(), 0))
		},
		"read the parent's memory": func() error {
			here := make([]byte, 1)
			_, err := unix.ProcessVMReadv(os.Getppid(), []unix.Iovec{{Base: &here[0], Len: 1}}, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
			return succeeded("process_vm_readv", err)
		},
		"make memory executable": func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
			return succeeded("mmap", err)
		},
		"raise a limit": func() error {
			return succeeded("setrlimit", unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}))
		},
		"mount":        func() error { return succeeded("mount", unix.Mount("none", "/tmp", "tmpfs", 0, "")) },
		"leave":        func() error { return succeeded("unshare", unix.Unshare(unix.CLONE_NEWUSER)) },
		"use io_uring": func() error { return raw(unix.SYS_IO_URING_SETUP, 1) },
		"load a filter": func() error {
			return raw(unix.SYS_BPF, 0)
		},
		"change the owner": func() error { return raw(unix.SYS_SETUID, 0) },
	}
}

func raw(call uintptr, arg uintptr) error {
	r, _, errno := unix.RawSyscall(call, arg, 0, 0)
	if errno == 0 {
		if call == unix.SYS_CLONE && r == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		return fmt.Errorf("system call %d: succeeded", call)
	}
	return errno
}

// looters gather what is within reach; what they bring home is looked at.
func looters() map[string]func(job.Input) string {
	return map[string]func(job.Input) string{
		"process id":  func(job.Input) string { return fmt.Sprint(os.Getpid()) },
		"environment": func(job.Input) string { return strings.Join(os.Environ(), "\n") },
		"open files": func(job.Input) string {
			var open []string
			for fd := range 64 {
				if _, err := unix.Write(fd, nil); fd > 2 && !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.EINVAL) {
					open = append(open, fmt.Sprintf("%d: %v", fd, err))
				}
			}
			return strings.Join(open, "\n")
		},
		"another repository": func(in job.Input) string {
			var found []string
			for _, name := range []string{"../other/secret", "/etc/passwd", "a/../../secret", "..", "./a", "a//b", "a\x00b", strings.Repeat("x/", 40_000) + "x"} {
				if data, err := in.Tree.ReadFile(name); err == nil {
					found = append(found, name+": "+string(data))
				}
			}
			return strings.Join(found, "\n")
		},
	}
}

// crimes end the worker, or make it of no use.
func crimes() map[string]func() {
	var sink [][]byte
	return map[string]func(){
		"take all memory": func() {
			for {
				chunk := make([]byte, 16<<20)
				for i := 0; i < len(chunk); i += 4096 {
					chunk[i] = 1
				}
				sink = append(sink, chunk)
			}
		},
		"take all memory without the runtime": func() {
			for {
				if _, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE); err != nil {
					panic("out of memory at last: " + err.Error())
				}
			}
		},
		"compute for ever": func() {
			for i := 0; ; i++ {
				_ = i
			}
		},
		"compute for ever on all processors": func() {
			for range 8 {
				go func() {
					for i := 0; ; i++ {
						_ = i
					}
				}()
			}
			for i := 0; ; i++ {
				_ = i
			}
		},
		"wait for ever": func() { select {} },
		"start threads": func() {
			for range 10_000 {
				go func() {
					runtime.LockOSThread()
					_, _ = io.ReadFull(os.NewFile(0, "stdin"), make([]byte, 1<<20))
				}()
			}
			select {}
		},
		"recurse": func() { recurse(0) },
		"exit":    func() { os.Exit(3) },
		"crash": func() {
			go func() { panic("a secret value") }()
			select {}
		},
		"panic":          func() { panic("a template that no one has tried") },
		"print":          func() { fmt.Fprint(os.Stdout, strings.Repeat("hello", 100_000)) },
		"write garbage":  func() { _, _ = syscall.Write(1, []byte("this is no frame, is it?")); select {} },
		"announce much":  func() { _, _ = syscall.Write(1, []byte{8, 255, 255, 255, 255}); select {} },
		"stop half way":  func() { _, _ = syscall.Write(1, []byte{7, 255, 255, 0, 0, 1, 2, 3}); select {} },
		"send no result": func() { _, _ = syscall.Write(1, []byte{7, 3, 0, 0, 0, 1, 2, 3}); select {} },
		"close the pipe": func() { _ = syscall.Close(1); select {} },
		"flood": func() {
			ask := append([]byte{4, 4, 0, 0, 0, 1, 0, 1}, 'a')
			for {
				_, _ = syscall.Write(1, ask)
			}
		},
		"sleep": func() { <-time.After(time.Hour) },
		"ask for ever": func() {
			ask, answer := []byte{4, 4, 0, 0, 0, 1, 0, 1, 'z'}, make([]byte, 64<<10)
			for {
				_, _ = syscall.Write(1, ask)
				_, _ = syscall.Read(0, answer)
			}
		},
	}
}

//go:noinline
func recurse(n int) int {
	var pad [256]byte
	pad[n%256] = 1
	return recurse(n+1) + int(pad[(n+1)%256]) //nolint:staticcheck // without end is what it is for
}
