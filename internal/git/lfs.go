package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxPointer is the size of a pointer of Git LFS in bytes (its specification, version 1).
const maxPointer = 1024

// pointer is what Git LFS puts in the place of a file.
type pointer struct {
	oid  string
	size int64
}

// parsePointer reads a pointer (github.com/git-lfs/git-lfs, docs/spec.md); false when data is no pointer.
func parsePointer(data []byte) (pointer, bool) {
	text, ok := strings.CutPrefix(string(data[:min(len(data), maxPointer)]), "version https://git-lfs.github.com/spec/v1\n")
	if !ok || len(data) >= maxPointer {
		return pointer{}, false
	}
	p := pointer{size: -1}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "oid":
			p.oid, _ = strings.CutPrefix(value, "sha256:")
		case "size":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				p.size = n
			}
		}
	}
	return p, len(p.oid) == 64 && hexOnly(p.oid) && p.size >= 0
}

// needed tells whether a rendering can do nothing with the pointer of a file in its place. Other files lie beside charts
// and are not looked into.
func needed(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".jsonnet", ".libsonnet", ".tpl", ".tgz", ".lock"}, path.Ext(name))
}

// exchanged is data, or what it stands for when it is a pointer.
func (v *view) exchanged(name string, data []byte) ([]byte, error) {
	p, ok := parsePointer(data)
	if !ok {
		return data, nil
	}
	fail := func(err error) ([]byte, error) { return nil, &fs.PathError{Op: "read", Path: name, Err: err} }
	switch {
	case !v.repo.LFS && !needed(name):
		return data, nil
	case !v.repo.LFS:
		return fail(fmt.Errorf("is a Git LFS pointer, and LFS is off for this repository; set enableLfs in its Secret: %w", ErrRefused))
	case p.size > v.s.opt.MaxFile:
		return fail(fmt.Errorf("is kept in Git LFS and has %d bytes, more than the %d that are read: %w", p.size, v.s.opt.MaxFile, ErrRefused))
	}
	file := filepath.Join(v.m.base, "lfs", p.oid)
	if kept, err := os.ReadFile(file); err == nil && p.is(kept) {
		return kept, nil
	}
	id := v.s.proofs.of(v.repo)
	return fly(v.ctx, v.s, "lfs "+string(id[:])+p.oid, func(ctx context.Context) ([]byte, error) {
		content, err := v.s.download(ctx, v.repo, p)
		var told *Error
		if err != nil && !errors.As(err, &told) {
			err = &Error{Repo: hideUserinfo(v.repo.URL), What: fmt.Sprintf("file %s is kept in Git LFS: %v", name, err), Cause: err}
		}
		if err != nil {
			return nil, err
		}
		keepFile(file, content)
		return content, nil
	})
}

func (p pointer) is(data []byte) bool {
	sum := sha256.Sum256(data)
	return int64(len(data)) == p.size && hex.EncodeToString(sum[:]) == p.oid
}

// keepFile keeps what was downloaded; what can not be kept is downloaded again.
func keepFile(file string, data []byte) {
	if os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	part, err := os.CreateTemp(filepath.Dir(file), "new-")
	if err != nil {
		return
	}
	_, err = part.Write(data)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		_ = os.Remove(part.Name())
	}
}
