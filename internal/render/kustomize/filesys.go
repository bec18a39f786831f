package kustomize

import (
	"errors"
	"path"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// fileSystem is a space as kustomize wants it. A build only reads: everything else is refused.
type fileSystem struct{ space *space }

var errReadOnly = errors.New("a source can not be written to, listed or opened by a build")

func slashed(p string) (string, error) { return tree.Clean(filepath.ToSlash(p)) }

// CleanedAbs implements filesys.FileSystem: the folder and the name of a path without its links.
func (f fileSystem) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	name, err := slashed(p)
	if err != nil {
		return "", "", err
	}
	real, kind, err := f.space.find(name)
	if err != nil {
		return "", "", err
	}
	full := filepath.FromSlash(path.Join("/", real))
	if kind == tree.Dir {
		return filesys.ConfirmedDir(full), "", nil
	}
	return filesys.ConfirmedDir(filepath.Dir(full)), filepath.Base(full), nil
}

// ReadFile implements filesys.FileSystem.
func (f fileSystem) ReadFile(p string) ([]byte, error) {
	name, err := slashed(p)
	if err != nil {
		return nil, err
	}
	real, err := f.space.resolve(name)
	if err != nil {
		return nil, err
	}
	return f.space.readFile(real)
}

// IsDir implements filesys.FileSystem.
func (f fileSystem) IsDir(p string) bool {
	name, err := slashed(p)
	if err != nil {
		return false
	}
	_, kind, err := f.space.find(name)
	return err == nil && kind == tree.Dir
}

// Exists implements filesys.FileSystem.
func (f fileSystem) Exists(p string) bool {
	name, err := slashed(p)
	if err != nil {
		return false
	}
	_, _, err = f.space.find(name)
	return err == nil
}

// The rest of filesys.FileSystem serves kustomize edit and clones of repositories.

// Create implements filesys.FileSystem.
func (fileSystem) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Open implements filesys.FileSystem.
func (fileSystem) Open(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir implements filesys.FileSystem.
func (fileSystem) Mkdir(string) error { return errReadOnly }

// MkdirAll implements filesys.FileSystem.
func (fileSystem) MkdirAll(string) error { return errReadOnly }

// RemoveAll implements filesys.FileSystem.
func (fileSystem) RemoveAll(string) error { return errReadOnly }

// ReadDir implements filesys.FileSystem.
func (fileSystem) ReadDir(string) ([]string, error) { return nil, errReadOnly }

// Glob implements filesys.FileSystem.
func (fileSystem) Glob(string) ([]string, error) { return nil, errReadOnly }

// WriteFile implements filesys.FileSystem.
func (fileSystem) WriteFile(string, []byte) error { return errReadOnly }

// Walk implements filesys.FileSystem.
func (fileSystem) Walk(string, filepath.WalkFunc) error { return errReadOnly }
