package kustomize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// mountDir is the folder that sources of other places are laid into.
const mountDir = ".lockstep-remote"

// space is the file system that Kustomize sees: the source at the root, other sources in folders of mountDir, and files that
// are laid over them. Files of trees are read when they are asked for.
type space struct {
	ctx    context.Context
	base   tree.FS
	mounts []tree.FS
	laid   map[string][]byte
	// sizes are those of the files read so far.
	sizes map[string]int
	read  int
}

func newSpace(ctx context.Context, base tree.FS) *space {
	return &space{ctx: ctx, base: base, laid: map[string][]byte{}, sizes: map[string]int{}}
}

// mount lays a tree in and returns its folder.
func (s *space) mount(f tree.FS) string {
	s.mounts = append(s.mounts, f)
	return mountDir + "/" + strconv.Itoa(len(s.mounts)-1)
}

// mountOf is the folder of the tree that name lies in; "." for the source itself.
func mountOf(name string) string {
	if !strings.HasPrefix(name, mountDir+"/") {
		return "."
	}
	parts := strings.SplitN(name, "/", 3)
	return parts[0] + "/" + parts[1]
}

// split tells the tree that name lies in, and its path there.
func (s *space) split(name string) (tree.FS, string, error) {
	at := mountOf(name)
	if at == "." {
		return s.base, name, nil
	}
	n, err := strconv.Atoi(path.Base(at))
	if err != nil || n < 0 || n >= len(s.mounts) {
		return nil, "", tree.NotExist("open", name)
	}
	if name == at {
		return s.mounts[n], ".", nil
	}
	return s.mounts[n], strings.TrimPrefix(name, at+"/"), nil
}

// resolve follows the links of name within the tree it lies in.
func (s *space) resolve(name string) (string, error) {
	if err := s.ctx.Err(); err != nil {
		return "", err
	}
	if _, ok := s.laid[name]; ok {
		return name, nil
	}
	f, rest, err := s.split(name)
	if err != nil {
		if s.isLaidDir(name) {
			return name, nil
		}
		return "", err
	}
	real, err := tree.Resolve(f, rest)
	if err != nil {
		return "", err
	}
	return path.Join(mountOf(name), real), nil
}

// stat is the kind of a resolved name.
func (s *space) stat(name string) (tree.Kind, error) {
	if _, ok := s.laid[name]; ok {
		return tree.File, nil
	}
	f, rest, err := s.split(name)
	if err == nil {
		var e tree.Entry
		if e, err = f.Stat(rest); err == nil {
			return e.Kind, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) && s.isLaidDir(name) {
		return tree.Dir, nil
	}
	return 0, err
}

func (s *space) isLaidDir(name string) bool {
	for p := range s.laid {
		if strings.HasPrefix(p, name+"/") {
			return true
		}
	}
	return false
}

// find resolves name and tells its kind.
func (s *space) find(name string) (real string, kind tree.Kind, err error) {
	if real, err = s.resolve(name); err != nil {
		return "", 0, err
	}
	kind, err = s.stat(real)
	return real, kind, err
}

// readFile reads a resolved name, within the bound of a rendering.
func (s *space) readFile(name string) ([]byte, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if data, ok := s.laid[name]; ok {
		return data, nil
	}
	f, rest, err := s.split(name)
	if err != nil {
		return nil, err
	}
	data, err := f.ReadFile(rest)
	if err != nil {
		return nil, err
	}
	if _, before := s.sizes[name]; !before {
		s.sizes[name] = len(data)
		if s.read += len(data); s.read > job.MaxRead {
			return nil, fmt.Errorf("%s: with this file more than the %d bytes that are allowed would be read", name, job.MaxRead)
		}
	}
	return data, nil
}
