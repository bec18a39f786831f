//go:build !linux

package supervise

import (
	"context"
	"os"
	"syscall"
	"time"
)

// childAttributes: other systems cannot tie a child's life to its parent's. Components
// watch their parent instead (WatchParent), which a frozen component cannot do.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// WaitForExit returns nil when the process pid has ended, or ctx's error.
func WaitForExit(ctx context.Context, pid int) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		process, err := os.FindProcess(pid)
		if err != nil || process.Signal(syscall.Signal(0)) != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
