//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// The flags with which the Go runtime and the C library start a thread; Go's own depend on the processor. Any other clone
// would be a process.
const (
	threadOfGo    = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	threadWithTLS = threadOfGo | unix.CLONE_SETTLS
	threadOfC     = threadWithTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID
)

// allowed are the system calls that a Go program needs to compute, and to read and write files that are open.
func allowed() []string {
	return []string{
		"read", "write", "close",
		"munmap", "mremap", "madvise", "brk",
		"futex", "sched_yield", "sched_getaffinity", "gettid", "getpid", "set_robust_list", "rseq", "membarrier",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
		"nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday", "getrandom",
		"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2",
		"exit", "exit_group",
	}
}

// filter leaves the system calls of a computation, and nothing else: EPERM rather than a kill, so that what was tried gets
// an error to report.
func filter(Options) error {
	info, err := arch.GetInfo("")
	if err != nil {
		return lacks("seccomp: %v", err)
	}
	known := func(name string) bool { _, ok := info.SyscallNames[name]; return ok }
	names := slices.DeleteFunc(allowed(), func(name string) bool { return !known(name) })
	policy := seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionAllow, Names: names, NamesWithCondtions: conditional()},
		// The C library tries clone3 first and takes clone, whose flags can be looked at, when there is no such call.
		{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
	}}
	err = seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: policy})
	if err != nil {
		return lacks("the kernel has no seccomp: Linux with CONFIG_SECCOMP_FILTER is needed (%v)", errors.Unwrap(err))
	}
	return nil
}

// conditional are calls that are allowed with some arguments only: threads, but no processes; memory, but none that is
// executed; signals, but to this process.
func conditional() []seccomp.NameWithConditions {
	when := func(name string, c seccomp.Condition) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{c}}
	}
	const flags, protection = 0, 2
	return []seccomp.NameWithConditions{
		when("clone", seccomp.Condition{Argument: flags, Operation: seccomp.Equal, Value: threadOfGo}),
		when("clone", seccomp.Condition{Argument: flags, Operation: seccomp.Equal, Value: threadWithTLS}),
		when("clone", seccomp.Condition{Argument: flags, Operation: seccomp.Equal, Value: threadOfC}),
		when("mmap", seccomp.Condition{Argument: protection, Operation: seccomp.BitsNotSet, Value: unix.PROT_EXEC}),
		when("mprotect", seccomp.Condition{Argument: protection, Operation: seccomp.BitsNotSet, Value: unix.PROT_EXEC}),
		when("tgkill", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: uint64(os.Getpid())}),
	}
}
