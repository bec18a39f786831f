package pool

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownProgram is the program that runs, even when its file was replaced in the meantime.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// attributes end a worker with us, however we end.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func (l *launcher) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.serve()
}

// allow gives the worker limit of processor time from now on. The kernel counts whole seconds.
func (w *process) allow(limit time.Duration) {
	pid := w.cmd.Process.Pid
	// How the kernel names the processor clock of a process, see clock_getcpuclockid(3).
	const scheduled, shift = 2, 3
	var used unix.Timespec
	if unix.ClockGettime(int32(^pid<<shift|scheduled), &used) != nil {
		return // it has ended, which the conversation finds out
	}
	seconds := uint64(used.Sec) + 1 + uint64(limit/time.Second)
	if unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: unix.RLIM_INFINITY}, nil) == nil {
		w.mayUse = time.Duration(seconds) * time.Second
	}
}
