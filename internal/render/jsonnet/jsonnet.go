// Package jsonnet owns the evaluation of Jsonnet files of a source. It reads through tree.FS only, and imports values and
// the renderers' shared packages, no other renderer.
package jsonnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-jsonnet"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/buildenv"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// maxStack is the depth of calls an evaluation may reach, that of the jsonnet program.
const maxStack = 500

// Options of an evaluation.
type Options struct {
	// Tree is the repository; nothing else is read.
	Tree tree.FS
	// Dir is the application's folder in Tree, the last place that imports are looked for.
	Dir string
	// Jsonnet holds the external variables, top-level arguments and library folders of the source.
	Jsonnet v1alpha1.ApplicationSourceJsonnet
	// Env answers for the build variables that values may name; nil knows none.
	Env func(name string) string
}

// Render evaluates file, a path in the tree, and returns the objects of its result: one object, or a list of objects,
// lists and List kinds. A null is left out.
//
// An import is looked for in the folder of the importing file, then in the library folders from the last to the first (as
// with the jsonnet program, where the right-most -J wins), then in Options.Dir.
//
// An evaluation can not be stopped from outside: when ctx ends first, Render returns its error at once, and the evaluation
// goes on in the background until its next import or its end.
func Render(ctx context.Context, file string, o Options) ([]manifest.Object, []string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := evaluate(ctx, file, o)
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, nil, &job.Error{File: file, Reason: "the evaluation takes too long: " + ctx.Err().Error()}
	case r := <-done:
		if r.err != nil {
			return nil, nil, r.err
		}
		return objects(file, r.text)
	}
}

func evaluate(ctx context.Context, file string, o Options) (string, error) {
	vm := jsonnet.MakeVM()
	vm.MaxStack = maxStack
	vm.SetTraceOut(io.Discard)
	caught := &formatter{}
	vm.ErrorFormatter = caught
	vm.Importer(newImporter(ctx, o))
	for _, v := range o.Jsonnet.ExtVars {
		if value := buildenv.Substitute(v.Value, o.Env); v.Code {
			vm.ExtCode(v.Name, value)
		} else {
			vm.ExtVar(v.Name, value)
		}
	}
	for _, v := range o.Jsonnet.TLAs {
		if value := buildenv.Substitute(v.Value, o.Env); v.Code {
			vm.TLACode(v.Name, value)
		} else {
			vm.TLAVar(v.Name, value)
		}
	}
	text, err := vm.EvaluateFile(file)
	if err != nil {
		return "", caught.explain(file, err)
	}
	if len(text) > job.MaxRendered {
		return "", &job.Error{File: file, Reason: fmt.Sprintf("the result has %d bytes, more than the %d that are allowed", len(text), job.MaxRendered)}
	}
	return text, nil
}

// objects reads the result of an evaluation. Lines of the result mean nothing to people and are left out.
func objects(file, text string) ([]manifest.Object, []string, error) {
	var stream bytes.Buffer
	if err := flatten(&stream, []byte(text)); err != nil {
		return nil, nil, &job.Error{File: file, Reason: "the result is " + err.Error()}
	}
	found, warnings, err := manifest.Parse("", stream.Bytes(), manifest.Options{JSON: true, MaxObjects: job.MaxObjects, MaxBytes: 2 * job.MaxRendered})
	if err != nil {
		var pe *manifest.ParseError
		if errors.As(err, &pe) {
			return nil, nil, &job.Error{File: file, Object: pe.Object, Reason: "the result holds an object that can not be used: " + pe.Err.Error()}
		}
		return nil, nil, &job.Error{File: file, Reason: err.Error()}
	}
	for i := range found {
		found[i].Origin = manifest.Origin{File: file}
	}
	for i := range warnings {
		warnings[i] = file + ": " + warnings[i]
	}
	return found, warnings, nil
}

// flatten writes the objects of lists in lists as one stream.
func flatten(out *bytes.Buffer, value json.RawMessage) error {
	value = bytes.TrimSpace(value)
	switch {
	case bytes.Equal(value, []byte("null")):
		return nil
	case len(value) > 0 && value[0] == '{':
		out.Write(value)
		return out.WriteByte('\n')
	case len(value) > 0 && value[0] == '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return err
		}
		for _, item := range items {
			if err := flatten(out, item); err != nil {
				return err
			}
		}
		return nil
	}
	if len(value) > 40 {
		value = append(value[:40:40], "…"...)
	}
	return fmt.Errorf("%s, neither an object nor a list of objects", value)
}
