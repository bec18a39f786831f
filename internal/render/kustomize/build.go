package kustomize

import (
	"context"
	"fmt"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// turn is held during a build: the library keeps the schema it works with in variables of the process.
var turn = make(chan struct{}, 1)

// build returns the text of kustomize build and the path of the kustomization file. A build can not be stopped from outside,
// but it ends at its next read once ctx has ended; build returns at once.
func build(ctx context.Context, in job.Input, charts ChartRenderer) (text []byte, at string, err error) {
	dir, err := tree.Resolve(in.Tree, in.Path)
	if err != nil {
		return nil, "", &job.Error{File: in.Path, Reason: err.Error()}
	}
	w := newWalker(ctx, in, charts)
	at, err = w.run(dir)
	if err != nil {
		return nil, at, w.named(err)
	}
	if err := w.take(); err != nil {
		return nil, at, &job.Error{File: at, Reason: err.Error()}
	}
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-turn }()
		text, err := w.build(dir)
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, at, &job.Error{File: at, Reason: "the build takes too long: " + ctx.Err().Error()}
	case r := <-done:
		if r.err != nil {
			return nil, at, w.named(w.explain(at, r.err))
		}
		if len(r.text) > job.MaxRendered {
			return nil, at, &job.Error{File: at, Reason: fmt.Sprintf("the result has %d bytes, more than the %d that are allowed", len(r.text), job.MaxRendered)}
		}
		return r.text, at, nil
	}
}

// take waits for the turn of this build.
func (w *walker) take() error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-w.ctx.Done():
		return fmt.Errorf("another build takes too long: %w", w.ctx.Err())
	}
}

// exclusively runs a small piece of the library's work while no build runs.
func (w *walker) exclusively(work func() ([]byte, error)) ([]byte, error) {
	if err := w.take(); err != nil {
		return nil, err
	}
	defer func() { <-turn }()
	return work()
}

// build runs the library over the prepared space.
func (w *walker) build(dir string) (text []byte, err error) {
	// The library panics for some inputs that it did not expect; they come from outside.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize can not cope with this: %v", r)
		}
	}()
	if w.schema {
		// A schema of a kustomization would stay for the next build.
		defer openapi.ResetOpenAPI()
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // as the program, whose default is not the library's
	result, err := krusty.MakeKustomizer(options).Run(fileSystem{w.space}, path.Join("/", dir))
	if err != nil {
		return nil, err
	}
	if len(w.metadata) > 0 {
		if err := w.restore(dir, result); err != nil {
			return nil, err
		}
	}
	return result.AsYaml()
}
