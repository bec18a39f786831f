package jsonnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/google/go-jsonnet"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// importer finds imports in the tree. The context is held because go-jsonnet's interface has no place for one.
type importer struct {
	ctx   context.Context
	tree  tree.FS
	roots []string
	found map[string]jsonnet.Contents
	read  int
}

func newImporter(ctx context.Context, o Options) *importer {
	roots := slices.Clone(o.Jsonnet.Libs)
	slices.Reverse(roots)
	return &importer{
		ctx:   ctx,
		tree:  tree.Follow(o.Tree),
		roots: append(roots, o.Dir),
		found: map[string]jsonnet.Contents{},
	}
}

// Import implements jsonnet.Importer. The importing file is a path in the tree, and empty for the file of the evaluation and
// for code in variables, which both count from the root.
func (i *importer) Import(from, name string) (jsonnet.Contents, string, error) {
	if err := i.ctx.Err(); err != nil {
		return jsonnet.Contents{}, "", err
	}
	if path.IsAbs(name) {
		return jsonnet.Contents{}, "", fmt.Errorf("import %q: an absolute path %w", name, tree.ErrOutside)
	}
	dirs := append([]string{path.Dir(from)}, i.roots...)
	outside := false
	for _, dir := range dirs {
		at, err := tree.Join(strings.TrimLeft(dir, "/"), name)
		if err != nil {
			outside = true
			continue
		}
		contents, err := i.load(at)
		switch {
		case err == nil:
			return contents, at, nil
		case errors.Is(err, fs.ErrNotExist):
		default:
			return jsonnet.Contents{}, "", err
		}
	}
	if outside {
		return jsonnet.Contents{}, "", fmt.Errorf("import %q: %w", name, tree.ErrOutside)
	}
	return jsonnet.Contents{}, "", fmt.Errorf("import %q: not found in %s", name, strings.Join(unique(dirs), ", "))
}

func (i *importer) load(at string) (jsonnet.Contents, error) {
	if contents, ok := i.found[at]; ok {
		return contents, nil
	}
	// A folder of that name is no match: a library can lie beside a folder of its name.
	if e, err := i.tree.Stat(at); err != nil {
		return jsonnet.Contents{}, err
	} else if e.Kind != tree.File {
		return jsonnet.Contents{}, tree.NotExist("read", at)
	}
	data, err := i.tree.ReadFile(at)
	if err != nil {
		return jsonnet.Contents{}, err
	}
	if i.read += len(data); i.read > job.MaxRead {
		return jsonnet.Contents{}, fmt.Errorf("import %q: the files read have more than the %d bytes that are allowed", at, job.MaxRead)
	}
	i.found[at] = jsonnet.MakeContentsRaw(data)
	return i.found[at], nil
}

func unique(dirs []string) []string {
	var out []string
	for _, d := range dirs {
		if d = path.Clean(d); !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}
