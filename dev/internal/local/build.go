package local

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds the local cluster and, unless binary names one that is there, Lockstep. Both show their progress on the
// error stream. It returns the path of Lockstep's binary.
func Build(ctx context.Context, root, binary string) (string, error) {
	if err := run(exec.CommandContext(ctx, filepath.Join(root, "dev", "devcluster"), "--build-only"), root); err != nil {
		return "", err
	}
	if binary != "" {
		path, err := filepath.Abs(binary)
		if err == nil {
			_, err = exec.LookPath(path)
		}
		if err != nil {
			return "", fmt.Errorf("lockstep: %w", err)
		}
		return path, nil
	}
	path := filepath.Join(root, "bin", "lockstep")
	return path, run(exec.CommandContext(ctx, filepath.Join(root, "dev", "compile"), path, "./cmd/lockstep"), root)
}
