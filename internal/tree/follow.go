package tree

import (
	"fmt"
	"path"
	"strings"
)

// maxLinks bounds the links followed for one path, as operating systems do.
const maxLinks = 40

// Resolve follows every link in name, the last element included, and returns the path it leads to. A link out of the
// tree is ErrOutside; more than 40 links are an error. A missing last element is returned as it is, so that the caller's
// own read reports it.
func Resolve(f FS, name string) (string, error) {
	p, err := Clean(name)
	if err != nil {
		return "", err
	}
	done, rest := ".", p
	for links := 0; rest != "." && rest != ""; {
		first, tail, _ := strings.Cut(rest, "/")
		next, err := Clean(path.Join(done, first))
		if err != nil {
			return "", fmt.Errorf("path %s: %w", name, ErrOutside)
		}
		e, ok, err := Exists(f, next)
		if err != nil {
			return "", err
		}
		if !ok {
			return path.Join(next, tail), nil
		}
		if e.Kind != Link {
			done, rest = next, tail
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("link %s: more than %d links", name, maxLinks)
		}
		target, err := f.ReadLink(next)
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			return "", fmt.Errorf("link %s to %s: %w", next, target, ErrOutside)
		}
		// The target is joined before it is cleaned: a link may climb, as long as it stays inside.
		if done, rest, err = splitTarget(done, target, tail); err != nil {
			return "", fmt.Errorf("link %s to %s: %w", next, target, ErrOutside)
		}
	}
	return done, nil
}

func splitTarget(dir, target, tail string) (done, rest string, err error) {
	joined, err := Clean(path.Join(dir, target, tail))
	if strings.HasPrefix(path.Join(dir, target), "..") {
		return "", "", ErrOutside
	}
	return ".", joined, err
}

type follow struct{ FS }

// Follow is a view of f in which links are what they lead to. A link out of the tree reads as ErrOutside.
func Follow(f FS) FS {
	if _, ok := f.(follow); ok {
		return f
	}
	return follow{f}
}

func (v follow) Stat(name string) (Entry, error) {
	p, err := Resolve(v.FS, name)
	if err != nil {
		return Entry{}, err
	}
	e, err := v.FS.Stat(p)
	e.Name = path.Base(name)
	return e, err
}

func (v follow) ReadFile(name string) ([]byte, error) {
	p, err := Resolve(v.FS, name)
	if err != nil {
		return nil, err
	}
	return v.FS.ReadFile(p)
}

// ReadDir reports links inside the folder as links: a broken link must not make its folder unreadable.
func (v follow) ReadDir(name string) ([]Entry, error) {
	p, err := Resolve(v.FS, name)
	if err != nil {
		return nil, err
	}
	return v.FS.ReadDir(p)
}
