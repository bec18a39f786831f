package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"
)

// Map is a tree held in memory: path to content. Folders exist because files lie in them. It must not be changed once
// it is read.
type Map map[string][]byte

// Stat implements FS.
func (m Map) Stat(name string) (Entry, error) {
	if data, ok := m[name]; ok {
		return fileEntry(name, data), nil
	}
	if name == "." || m.hasDir(name) {
		return Entry{Name: path.Base(name), Kind: Dir, Size: -1}, nil
	}
	return Entry{}, NotExist("stat", name)
}

// ReadFile implements FS. The caller must not change what it gets.
func (m Map) ReadFile(name string) ([]byte, error) {
	data, ok := m[name]
	switch {
	case ok:
		return data, nil
	case name == "." || m.hasDir(name):
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	return nil, NotExist("read", name)
}

// ReadDir implements FS.
func (m Map) ReadDir(name string) ([]Entry, error) {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	seen := map[string]Entry{}
	for p, data := range m {
		rest, ok := strings.CutPrefix(p, prefix)
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			seen[first] = Entry{Name: first, Kind: Dir, Size: -1}
		} else {
			seen[first] = fileEntry(rest, data)
		}
	}
	if len(seen) == 0 && name != "." {
		return nil, NotExist("readdir", name)
	}
	entries := make([]Entry, 0, len(seen))
	for _, e := range seen {
		entries = append(entries, e)
	}
	return sortEntries(entries), nil
}

// ReadLink implements FS; a Map holds no links.
func (m Map) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}

func (m Map) hasDir(name string) bool {
	for p := range m {
		if strings.HasPrefix(p, name+"/") {
			return true
		}
	}
	return false
}

func fileEntry(name string, data []byte) Entry {
	sum := sha256.Sum256(data)
	return Entry{Name: path.Base(name), Kind: File, Hash: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}
