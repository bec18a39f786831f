package tree

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

type disk struct {
	root *os.Root
}

// Open is the folder dir of this machine as a tree, for people who render what they have checked out. It can not be left
// through links. The caller closes it.
func Open(dir string) (FS, func() error, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	return disk{root: root}, root.Close, nil
}

func (d disk) Stat(name string) (Entry, error) {
	info, err := d.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return Entry{}, err
	}
	return diskEntry(info), nil
}

func (d disk) ReadFile(name string) ([]byte, error) { return d.root.ReadFile(filepath.FromSlash(name)) }

func (d disk) ReadDir(name string) ([]Entry, error) {
	list, err := fs.ReadDir(d.root.FS(), path.Clean(name))
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(list))
	for _, item := range list {
		if name == "." && item.Name() == ".git" {
			continue // what Git keeps for itself is no part of the source
		}
		info, err := item.Info()
		if err != nil {
			return nil, err
		}
		entries = append(entries, diskEntry(info))
	}
	return sortEntries(entries), nil
}

func (d disk) ReadLink(name string) (string, error) {
	target, err := d.root.Readlink(filepath.FromSlash(name))
	return filepath.ToSlash(target), err
}

func diskEntry(info fs.FileInfo) Entry {
	e := Entry{Name: info.Name(), Kind: File, Size: info.Size()}
	switch {
	case info.IsDir():
		e.Kind, e.Size = Dir, -1
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind = Link
	}
	return e
}
