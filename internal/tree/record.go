package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"sync"
)

// read is one question that was asked of a tree.
type read struct {
	op   readOp
	path string
}

type readOp uint8

const (
	readStat readOp = iota + 1
	readFile
	readDir
	readLink
)

// ReadSet is what a rendering read of a tree, and what it found: as long as another tree answers the same, the rendering
// is the same (DESIGN.md §2.2).
type ReadSet struct {
	mu    sync.Mutex
	found map[read]string
	bytes int64
}

// Record is a view of f that notes every read in the set it returns.
func Record(f FS) (FS, *ReadSet) {
	set := &ReadSet{found: map[read]string{}}
	return recorder{base: f, set: set}, set
}

// Holds tells whether every read of the set finds the same in f.
func (s *ReadSet) Holds(f FS) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, want := range s.found {
		if answer(f, r) != want {
			return false
		}
	}
	return true
}

// Bytes is the size of all that was read.
func (s *ReadSet) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Len is the number of different reads.
func (s *ReadSet) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.found)
}

func (s *ReadSet) note(r read, found string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.found[r]; !again {
		s.found[r] = found
		s.bytes += int64(size)
	}
}

const absent = "absent"

// answer is what f says to r, as a text. An error other than absence is an answer that equals no other.
func answer(f FS, r read) string {
	switch r.op {
	case readStat, readFile:
		e, err := f.Stat(r.path)
		if err != nil {
			return failure(err)
		}
		if r.op == readStat || e.Kind != File {
			return e.Kind.String()
		}
		if e.Hash != "" {
			return e.Hash
		}
		data, err := f.ReadFile(r.path)
		if err != nil {
			return failure(err)
		}
		return contentHash(data)
	case readDir:
		entries, err := f.ReadDir(r.path)
		if err != nil {
			return failure(err)
		}
		return listing(entries)
	case readLink:
		target, err := f.ReadLink(r.path)
		if err != nil {
			return failure(err)
		}
		return target
	}
	return ""
}

func failure(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return absent
	}
	return ""
}

// listing hashes names and kinds only: a changed file in a folder is not a changed folder.
func listing(entries []Entry) string {
	h := sha256.New()
	for _, e := range entries {
		h.Write([]byte(e.Name))
		h.Write([]byte{0, byte(e.Kind)})
		if e.Kind == Submodule {
			h.Write([]byte(e.Hash))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

type recorder struct {
	base FS
	set  *ReadSet
}

func (v recorder) Stat(name string) (Entry, error) {
	e, err := v.base.Stat(name)
	found := e.Kind.String()
	if err != nil {
		found = failure(err)
	}
	v.set.note(read{readStat, name}, found, 0)
	return e, err
}

func (v recorder) ReadFile(name string) ([]byte, error) {
	data, err := v.base.ReadFile(name)
	if err != nil {
		r := read{readFile, name}
		v.set.note(r, answer(v.base, r), 0)
		return nil, err
	}
	v.noteFile(name, data)
	return data, nil
}

func (v recorder) noteFile(name string, data []byte) {
	r := read{readFile, name}
	if e, err := v.base.Stat(name); err == nil && e.Hash != "" {
		v.set.note(r, e.Hash, len(data))
	} else {
		v.set.note(r, contentHash(data), len(data))
	}
}

func (v recorder) ReadDir(name string) ([]Entry, error) {
	entries, err := v.base.ReadDir(name)
	found := failure(err)
	if err == nil {
		found = listing(entries)
	}
	v.set.note(read{readDir, name}, found, 0)
	return entries, err
}

func (v recorder) ReadLink(name string) (string, error) {
	target, err := v.base.ReadLink(name)
	found := target
	if err != nil {
		found = failure(err)
	}
	v.set.note(read{readLink, name}, found, 0)
	return target, err
}
