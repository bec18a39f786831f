package supervise

import "context"

// WithParent returns a context that ends when the process pid does. The returned
// function stops watching.
func WithParent(ctx context.Context, pid int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		// The error is either ctx's, or the system cannot watch processes: then the
		// caller's other means (signals, down) still end the cluster.
		if err := WaitForExit(ctx, pid); err == nil {
			cancel()
		}
	}()
	return ctx, cancel
}

// WatchParent calls die when the process pid ends. Components use it where the system
// does not kill them with their supervisor.
func WatchParent(ctx context.Context, pid int, die func()) {
	go func() {
		if WaitForExit(ctx, pid) == nil {
			die()
		}
	}()
}
