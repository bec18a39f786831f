package local

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// BuildCluster builds the local cluster where that is not done already, and shows the progress on the error stream.
func BuildCluster(ctx context.Context, root string) error {
	return run(exec.CommandContext(ctx, script(root), "--build-only"), root)
}

// BuildLockstep gives the path of Lockstep's binary: of the one that binary names, else of one built now, which shows its
// progress on the error stream.
func BuildLockstep(ctx context.Context, root, binary string) (string, error) {
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
	return path, Compile(ctx, root, path, "./cmd/lockstep")
}

// Compile builds a program of the root module as the product is built, into the file path, and shows its progress on the
// error stream.
func Compile(ctx context.Context, root, path, pkg string) error {
	return run(exec.CommandContext(ctx, filepath.Join(root, "dev", "compile"), path, pkg), root)
}
