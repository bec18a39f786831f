package supervise

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childAttributes makes a component die with the supervisor, however that dies. A
// process group of its own keeps a terminal's Ctrl-C for the supervisor alone.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// WaitForExit returns nil when the process pid has ended, or ctx's error.
func WaitForExit(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := unix.Poll(poll, int(time.Second/time.Millisecond))
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("process %d: poll: %w", pid, err)
		}
		if n > 0 {
			return nil
		}
	}
}
