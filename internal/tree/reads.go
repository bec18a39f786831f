package tree

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
)

// ReadOp is what a read asks of a path.
type ReadOp uint8

// The questions of FS. Their numbers are stored, so none changes its meaning.
const (
	// ReadKind asks what a path is: a file, a folder, a link, or nothing; of a submodule, at which commit.
	ReadKind ReadOp = iota + 1
	// ReadContent asks for the content of a file.
	ReadContent
	// ReadNames asks for the names in a folder and their kinds.
	ReadNames
	// ReadTarget asks where a link leads.
	ReadTarget
)

// Read is one question that was asked of a tree, and what it found.
type Read struct {
	Op    ReadOp
	Path  string
	Found string
}

// Reads is everything that a rendering read of a tree, sorted: as long as another tree answers the same, the rendering is
// the same (DESIGN.md §2.2). It is not changed any more once it was made.
type Reads []Read

// Hold tells whether every read finds the same in f.
func (r Reads) Hold(f FS) bool {
	for _, one := range r {
		if answer(f, one.Op, one.Path) != one.Found {
			return false
		}
	}
	return true
}

func sortReads(list Reads) Reads {
	slices.SortFunc(list, func(a, b Read) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Op, b.Op)) })
	return list
}

// Change is one path that differs between two trees.
type Change struct {
	Path string
	// Kind tells that the path came, went, became something else or is a submodule at another commit. Otherwise it is a file
	// or a link of another content.
	Kind bool
	// Submodule tells that what lies below the path, or below paths that it names, is of another repository: it may differ
	// without changes of its own in the list.
	Submodule bool
}

// Concerns calls visit for every question of which c may change the answer.
func (c Change) Concerns(visit func(op ReadOp, path string)) {
	visit(ReadContent, c.Path)
	visit(ReadTarget, c.Path)
	if c.Kind {
		visit(ReadKind, c.Path)
		visit(ReadNames, c.Path)
		visit(ReadNames, parent(c.Path))
	}
}

func parent(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "."
}

const absent = "absent"

// answer is what f says to a question, as a text. An error other than absence is an answer that equals no other.
func answer(f FS, op ReadOp, path string) string {
	switch op {
	case ReadKind, ReadContent:
		e, err := f.Stat(path)
		if err != nil {
			return failure(err)
		}
		if op == ReadKind || e.Kind != File {
			return kindOf(e)
		}
		if e.Hash != "" {
			return e.Hash
		}
		data, err := f.ReadFile(path)
		if err != nil {
			return failure(err)
		}
		return contentHash(data)
	case ReadNames:
		entries, err := f.ReadDir(path)
		if err != nil {
			return failure(err)
		}
		return listing(entries)
	case ReadTarget:
		target, err := f.ReadLink(path)
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

func kindOf(e Entry) string {
	if e.Kind == Submodule {
		return e.Kind.String() + " " + e.Hash
	}
	return e.Kind.String()
}

// listing hashes names and kinds only: a changed file in a folder is not a changed folder.
func listing(entries []Entry) string {
	h := sha256.New()
	for _, e := range entries {
		h.Write([]byte(e.Name))
		h.Write([]byte{0, byte(e.Kind)})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
