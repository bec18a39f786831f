// Package directory owns sources that are a folder of manifests: YAML, JSON and Jsonnet files. It imports values and the
// Jsonnet renderer.
package directory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/jsonnet"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// skipMarker anywhere in a file leaves the file out.
const skipMarker = "+argocd:skip-file-rendering"

// jsonnetExt marks programs among the manifests.
const jsonnetExt = ".jsonnet"

// excludeHint is what helps with a file that is not meant for Kubernetes.
const excludeHint = "if the file is meant for something else, exclude it with spec.source.directory.exclude"

// Render reads the manifests of the folder in.Path in the order of their paths.
//
// Files are taken by their extension: .yaml, .yml, .json and .jsonnet, or all with DisableExtensionFilter; those of folders
// below only with Recurse. Include and Exclude are globs over the path below the folder: * and ** match any text, slashes
// included, ? one character, [a-z] a range, {a,b} alternatives. Exclude wins. A link to a file is read, a link to a folder
// is not entered, one that leads nowhere is left out with a warning, and one that leads out of the source is an error.
//
// A file without apiVersion and kind is left out with a warning, as long as nothing in it looks like a manifest: folders hold
// other YAML files too, and a broken manifest must not look like a removed one.
func Render(ctx context.Context, in job.Input) (job.Output, error) {
	r := &renderer{in: in, tree: tree.Follow(in.Tree), out: job.Output{Type: v1alpha1.SourceTypeDirectory}}
	if in.Source.Directory != nil {
		r.opts = *in.Source.Directory
	}
	files, err := r.list()
	if err != nil {
		return job.Output{}, err
	}
	for _, name := range files {
		if err := ctx.Err(); err != nil {
			return job.Output{}, err
		}
		if err := r.add(ctx, name); err != nil {
			return job.Output{}, err
		}
	}
	return r.out, nil
}

// Plain tells whether the folder holds manifests alone and no Jsonnet, so that rendering it parses text and runs nothing. A
// folder that can not be listed is plain: Render says why.
func Plain(in job.Input) bool {
	r := &renderer{in: in, tree: tree.Follow(in.Tree)}
	if in.Source.Directory != nil {
		r.opts = *in.Source.Directory
	}
	files, _ := r.list()
	return !slices.ContainsFunc(files, func(name string) bool { return path.Ext(name) == jsonnetExt })
}

type renderer struct {
	in   job.Input
	tree tree.FS
	opts v1alpha1.ApplicationSourceDirectory
	out  job.Output
	read int
}

func (r *renderer) warn(name, format string, args ...any) {
	r.out.Warnings = append(r.out.Warnings, name+": "+fmt.Sprintf(format, args...))
}

// add reads one file and takes in its objects.
func (r *renderer) add(ctx context.Context, name string) error {
	data, err := r.tree.ReadFile(name)
	if err != nil {
		return &job.Error{File: name, Reason: "can not be read: " + err.Error()}
	}
	if r.read += len(data); r.read > job.MaxRead {
		return &job.Error{File: name, Reason: fmt.Sprintf("with this file more than the %d bytes that are allowed would be read", job.MaxRead)}
	}
	if bytes.Contains(data, []byte(skipMarker)) {
		return nil
	}
	objects, warnings, err := r.objects(ctx, name, data)
	if err != nil {
		return err
	}
	r.out.Objects = append(r.out.Objects, objects...)
	r.out.Warnings = append(r.out.Warnings, warnings...)
	if len(r.out.Objects) > job.MaxObjects {
		return &job.Error{File: name, Reason: fmt.Sprintf("with this file there are more than the %d objects that are allowed", job.MaxObjects)}
	}
	return nil
}

func (r *renderer) objects(ctx context.Context, name string, data []byte) ([]manifest.Object, []string, error) {
	if path.Ext(name) == jsonnetExt {
		return jsonnet.Render(ctx, name, jsonnet.Options{Tree: r.in.Tree, Dir: r.in.Path, Jsonnet: r.opts.Jsonnet, Env: r.in.Variable})
	}
	objects, warnings, err := manifest.Parse(name, data, manifest.Options{MaxBytes: job.MaxRendered, MaxObjects: job.MaxObjects})
	if err == nil {
		return objects, warnings, nil
	}
	var pe *manifest.ParseError
	if !errors.As(err, &pe) {
		return nil, nil, &job.Error{File: name, Reason: err.Error()}
	}
	if !looksLikeManifest(data, pe) {
		r.warn(name, "left out, it is no Kubernetes manifest (%s)", pe.Err)
		return nil, nil, nil
	}
	reason := pe.Err.Error()
	if errors.Is(err, manifest.ErrNotManifest) {
		reason += "; " + excludeHint
	}
	return nil, nil, &job.Error{File: pe.Origin.File, Line: pe.Origin.Line, Object: pe.Object, Reason: reason}
}

// looksLikeManifest tells whether a file that can not be used was meant to be. In doubt it was.
func looksLikeManifest(data []byte, err *manifest.ParseError) bool {
	keys := regexp.MustCompile(`(?m)^\s*(- +)?[{"']*(apiVersion|kind)["']*\s*:`)
	if errors.Is(err, manifest.ErrNotManifest) {
		// The document itself has neither key; another one of the file may be a manifest.
		keys = regexp.MustCompile(`(?m)^[{"']*(apiVersion|kind)["']*\s*:`)
	}
	return keys.Match(data)
}
