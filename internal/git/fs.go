package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

const (
	// maxMeta bounds commits and tags, maxFolder tree objects, in bytes.
	maxMeta   = 8 << 20
	maxFolder = 64 << 20
)

// Tree is the repository at a commit, which is fetched and kept if it is not. Reads end when ctx does. A damaged mirror
// is fetched again in the middle of reading.
func (s *Store) Tree(ctx context.Context, r Repo, commit string) (tree.FS, error) {
	v, c, err := s.view(ctx, r, commit)
	if err != nil {
		return nil, err
	}
	v.root = c.Tree
	return v, nil
}

// Commit is what a commit says about itself. It is fetched if it is not here.
func (s *Store) Commit(ctx context.Context, r Repo, commit string) (Commit, error) {
	_, c, err := s.view(ctx, r, commit)
	return c, err
}

func (s *Store) view(ctx context.Context, r Repo, commit string) (*view, Commit, error) {
	id, err := s.Ensure(ctx, r, Want{Commit: commit})
	if err != nil {
		return nil, Commit{}, err
	}
	v := &view{ctx: ctx, s: s, repo: r, m: s.mirror(Normalize(r.URL)), commit: id}
	data, err := v.object(id, "commit", maxMeta)
	if err != nil {
		return nil, Commit{}, v.explain(err)
	}
	c, err := parseCommit(id, data)
	return v, c, err
}

// view is a tree.FS of one commit. It holds the context of its rendering because the methods of FS take none.
type view struct {
	ctx          context.Context
	s            *Store
	repo         Repo
	m            *mirror
	commit, root string
}

// object reads an object of the mirror, which is fetched again when it turns out to be damaged.
func (v *view) object(id, kind string, limit int64) ([]byte, error) {
	for again := false; ; again = true {
		dir, number := v.m.at()
		var h header
		var data []byte
		err := v.s.readers.do(v.ctx, dir, func(r *reader) (err error) {
			h, data, err = r.contents(id, limit)
			return err
		})
		if err == nil && h.kind != kind {
			err = fmt.Errorf("object %s is a %s, not a %s: %w", id, h.kind, kind, errObject)
		}
		if err == nil {
			return data, nil
		}
		if again || !isAny(err, errMissing, ErrCorrupt) {
			return nil, err
		}
		if err := v.heal(number); err != nil {
			return nil, err
		}
	}
}

// heal replaces the mirror if it is still the damaged one and gets the commit of this view again.
func (v *view) heal(number int) error {
	if _, err := v.s.Refs(v.ctx, v.repo); err != nil {
		return err // what is left of the mirror is more than nothing
	}
	if err := v.m.lock(v.ctx); err != nil {
		return err
	}
	err := v.s.replace(v.ctx, v.m, number, len(v.commit))
	v.m.unlock()
	if err != nil {
		return err
	}
	_, err = v.s.Ensure(v.ctx, v.repo, Want{Commit: v.commit})
	return err
}

func isAny(err error, kinds ...error) bool {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// explain makes an error of reading a sentence about the repository.
func (v *view) explain(err error) error {
	var told *Error
	if errors.As(err, &told) || v.ctx.Err() != nil {
		return err
	}
	e := &Error{Repo: hideUserinfo(v.repo.URL), What: "commit " + v.commit + " can not be read", Cause: err, Hint: err.Error()}
	if isAny(err, errMissing, ErrCorrupt) {
		e.Kind = ErrCorrupt
	}
	return e
}

func (v *view) folder(hash string) ([]tree.Entry, error) {
	if entries, ok := v.s.trees.get(hash); ok {
		return entries, nil
	}
	data, err := v.object(hash, "tree", maxFolder)
	if err != nil {
		return nil, v.explain(err)
	}
	entries, err := parseTree(data, len(hash)/2)
	if err != nil {
		return nil, v.explain(err)
	}
	v.s.trees.put(hash, entries)
	return entries, nil
}

// find walks down to name. Links on the way are not followed: what lies behind one does not exist here.
func (v *view) find(op, name string) (tree.Entry, error) {
	e := tree.Entry{Name: ".", Kind: tree.Dir, Hash: v.root, Size: -1}
	if name == "." {
		return e, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if e.Kind != tree.Dir {
			return tree.Entry{}, tree.NotExist(op, name)
		}
		entries, err := v.folder(e.Hash)
		if err != nil {
			return tree.Entry{}, err
		}
		i, ok := slices.BinarySearchFunc(entries, part, func(e tree.Entry, n string) int { return strings.Compare(e.Name, n) })
		if !ok {
			return tree.Entry{}, tree.NotExist(op, name)
		}
		e = entries[i]
	}
	return e, nil
}

// Stat implements tree.FS. The size of a file is not known without reading it: -1.
func (v *view) Stat(name string) (tree.Entry, error) { return v.find("stat", name) }

// ReadDir implements tree.FS.
func (v *view) ReadDir(name string) ([]tree.Entry, error) {
	e, err := v.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if e.Kind != tree.Dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fmt.Errorf("is a %s, not a folder: %w", e.Kind, fs.ErrInvalid)}
	}
	entries, err := v.folder(e.Hash)
	return append([]tree.Entry(nil), entries...), err // the cached one is shared
}

// ReadFile implements tree.FS. A file above Options.MaxFile is ErrRefused.
func (v *view) ReadFile(name string) ([]byte, error) {
	data, err := v.blob("read", name, tree.File, v.s.opt.MaxFile)
	if err != nil {
		return nil, err
	}
	return v.exchanged(name, data)
}

// ReadLink implements tree.FS.
func (v *view) ReadLink(name string) (string, error) {
	const maxTarget = 64 << 10
	data, err := v.blob("readlink", name, tree.Link, maxTarget)
	return string(data), err
}

func (v *view) blob(op, name string, kind tree.Kind, limit int64) ([]byte, error) {
	e, err := v.find(op, name)
	if err != nil {
		return nil, err
	}
	if e.Kind != kind {
		return nil, &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("is a %s, not a %s: %w", e.Kind, kind, fs.ErrInvalid)}
	}
	data, err := v.object(e.Hash, "blob", limit)
	var big errBig
	if errors.As(err, &big) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w, more than the %d that are read: %w", big, limit, ErrRefused)}
	}
	if err != nil {
		return nil, v.explain(err)
	}
	return data, nil
}
