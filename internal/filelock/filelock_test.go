package filelock_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/filelock"
)

func TestOneTakesTheLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	release, err := filelock.Take(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Take(file); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("a second taker got %v, want ErrHeld", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = filelock.Take(file)
	if err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatIsMissing(t *testing.T) {
	_, err := filelock.Take(filepath.Join(t.TempDir(), "none", "lock"))
	if err == nil || errors.Is(err, filelock.ErrHeld) {
		t.Errorf("got %v, want the system's own error", err)
	}
}
