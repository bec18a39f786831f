// Package tree owns the read-only view of a source at one revision: a Git commit, a chart archive, a folder. Everything
// that renders reads through FS, so that reads can be recorded and answered across a pipe.
//
// It does no network I/O and imports nothing of ours.
package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Kind tells what an entry of a tree is.
type Kind uint8

// The kinds of entries, those of a Git tree.
const (
	File Kind = iota + 1
	Dir
	Link
	Submodule
)

// String names the kind in messages.
func (k Kind) String() string {
	switch k {
	case File:
		return "file"
	case Dir:
		return "folder"
	case Link:
		return "link"
	case Submodule:
		return "submodule"
	}
	return "unknown"
}

// Entry describes one name in a tree.
type Entry struct {
	// Name is the last element of the path.
	Name string
	Kind Kind
	// Hash identifies the content: the object id in Git, SHA-256 elsewhere. Two entries of equal hash have equal
	// content. Empty where it is not known without reading (folders outside Git).
	Hash string
	// Size of a file in bytes; -1 where it is not known without reading.
	Size int64
}

// FS is a source at one revision. Paths are slash-separated, relative to the root and clean; "." is the root. No method
// follows a link in the last element; Follow gives a view that does. A missing path is an error that
// errors.Is(err, fs.ErrNotExist) knows. An FS is safe for use by several goroutines.
type FS interface {
	Stat(name string) (Entry, error)
	ReadFile(name string) ([]byte, error)
	// ReadDir returns the entries of a folder, sorted by name.
	ReadDir(name string) ([]Entry, error)
	// ReadLink returns the target as it is stored.
	ReadLink(name string) (string, error)
}

// ErrOutside says that a path or a link leads out of the tree.
var ErrOutside = errors.New("leads out of the source")

// Clean makes name a path as FS wants it: slash-separated, relative, without dots. A leading slash means the root. It
// returns ErrOutside for a path that climbs above the root.
func Clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("path %q: %w", name, fs.ErrInvalid)
	}
	p := path.Clean(strings.TrimLeft(name, "/"))
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", fmt.Errorf("path %s: %w", name, ErrOutside)
	}
	return p, nil
}

// Join joins elements below dir, refusing to climb above the root. An element that starts with a slash counts from the
// root.
func Join(dir, name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return Clean(name)
	}
	return Clean(dir + "/" + name)
}

// Exists tells whether name is there, and its entry. Errors other than absence are returned.
func Exists(f FS, name string) (Entry, bool, error) {
	e, err := f.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, false, nil
	}
	return e, err == nil, err
}

// NotExist is the error for a missing path.
func NotExist(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// Walk calls visit for every file below dir in lexical order, folders before what they hold; a folder for which visit
// returns fs.SkipDir is not entered. Links are reported, not followed.
func Walk(f FS, dir string, visit func(name string, e Entry) error) error {
	entries, err := f.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		err := visit(name, e)
		if e.Kind == Dir && err == nil {
			err = Walk(f, name, visit)
		}
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return err
		}
	}
	return nil
}

func sortEntries(entries []Entry) []Entry {
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries
}
