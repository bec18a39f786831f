package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Detect is the tool that the files of a folder call for: Kustomize for a kustomization, Helm for a Chart.yaml, else
// Directory. Where both are there it is Kustomize, which can render the chart beside it, as in Argo CD.
func Detect(f tree.FS, dir string) (v1alpha1.ApplicationSourceType, error) {
	view := tree.Follow(f)
	name, err := kustomize.FileOf(view, dir)
	if err != nil {
		return "", err
	}
	if name != "" {
		return v1alpha1.SourceTypeKustomize, nil
	}
	e, ok, err := tree.Exists(view, path.Join(dir, "Chart.yaml"))
	if err != nil {
		return "", err
	}
	if ok && e.Kind == tree.File {
		return v1alpha1.SourceTypeHelm, nil
	}
	return v1alpha1.SourceTypeDirectory, nil
}

// checkPath wants a folder at dir, and says what is there when there is none.
func checkPath(f tree.FS, dir string) error {
	e, err := tree.Follow(f).Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &job.Error{Reason: fmt.Sprintf("path %s is not in the source; %s", dir, whatIsThere(f, path.Dir(dir)))}
	case err != nil:
		return &job.Error{Reason: fmt.Sprintf("path %s can not be read: %v", dir, err)}
	case e.Kind == tree.Submodule:
		return &job.Error{Reason: fmt.Sprintf("path %s is a submodule that is not laid in", dir)}
	case e.Kind != tree.Dir:
		return &job.Error{Reason: fmt.Sprintf("path %s is a %s, but a source's path is a folder: use %s, and spec.source.directory.include for one file", dir, e.Kind, path.Dir(dir))}
	}
	return nil
}

// shown bounds the names in a message.
const shown = 20

// whatIsThere lists the nearest folder at or above dir that exists.
func whatIsThere(f tree.FS, dir string) string {
	for {
		entries, err := tree.Follow(f).ReadDir(dir)
		if err == nil {
			return describe(dir, entries)
		}
		if dir == "." || dir == "/" {
			return "the source can not be listed: " + err.Error()
		}
		dir = path.Dir(dir)
	}
}

func describe(dir string, entries []tree.Entry) string {
	where := "folder " + dir
	if dir == "." {
		where = "the root"
	}
	if len(entries) == 0 {
		return where + " is empty"
	}
	names := make([]string, 0, shown)
	for _, e := range entries {
		if len(names) == shown {
			names = append(names, fmt.Sprintf("and %d more", len(entries)-shown))
			break
		}
		if e.Kind == tree.Dir {
			e.Name += "/"
		}
		names = append(names, e.Name)
	}
	return where + " has " + strings.Join(names, ", ")
}
