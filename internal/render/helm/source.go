package helm

import (
	"context"
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// source reads what spec.source.helm names.
type source struct {
	job.Input
	options v1alpha1.ApplicationSourceHelm
	// left is what may still be read, in bytes.
	left int64
}

// values are the texts laid over the values of the chart, in order.
func (s *source) values(ctx context.Context) ([]Values, error) {
	var all []Values
	for _, name := range s.options.ValueFiles {
		texts, err := s.files(ctx, name, "value file")
		if err != nil {
			return nil, err
		}
		if len(texts) == 0 && !s.options.IgnoreMissingValueFiles {
			return nil, &job.Error{Reason: fmt.Sprintf("value file %s does not exist", s.shown(name))}
		}
		all = append(all, texts...)
	}
	switch {
	case s.options.ValuesObject != nil && len(s.options.ValuesObject.Raw) > 0:
		all = append(all, Values{File: "spec.source.helm.valuesObject", Text: s.options.ValuesObject.Raw})
	case s.options.Values != "":
		all = append(all, Values{File: "spec.source.helm.values", Text: []byte(s.options.Values)})
	}
	return all, nil
}

// parameters are those of the source, with the content of fileParameters.
func (s *source) parameters(ctx context.Context) ([]Parameter, error) {
	var all []Parameter
	for _, p := range s.options.Parameters {
		all = append(all, Parameter{Name: p.Name, Value: s.Substitute(p.Value), String: p.ForceString})
	}
	for _, p := range s.options.FileParameters {
		texts, err := s.files(ctx, p.Path, "file parameter "+p.Name+":")
		if err != nil {
			return nil, err
		}
		if len(texts) != 1 {
			return nil, &job.Error{Reason: fmt.Sprintf("file parameter %s: file %s does not exist", p.Name, s.shown(p.Path))}
		}
		all = append(all, Parameter{Name: p.Name, Value: string(texts[0].Text), Literal: true})
	}
	return all, nil
}

// shown is name as messages show it: with the path that it leads to, where that differs.
func (s *source) shown(name string) string {
	root, file, err := s.locate(name)
	if err != nil || file == name || root == nil {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, file)
}

// locate is the tree and the path that a name leads to: $ref/… in the tree of a ref, /… from the root of the source,
// anything else from the folder of the application. Build variables are filled in. A URL comes back without a tree.
func (s *source) locate(name string) (tree.FS, string, error) {
	if ref, rest, ok := strings.Cut(strings.TrimPrefix(name, "$"), "/"); ok && strings.HasPrefix(name, "$") {
		if root, ok := s.Refs[ref]; ok {
			file, err := tree.Clean(s.Substitute(rest))
			return tree.Follow(root), file, err
		}
		if _, ok := s.Env[ref]; !ok && ref != "" && !strings.HasPrefix(ref, "{") && !strings.HasPrefix(ref, "$") {
			return nil, "", fmt.Errorf("no source of the application has ref %q", ref)
		}
	}
	expanded := s.Substitute(name)
	if strings.HasPrefix(expanded, "http://") || strings.HasPrefix(expanded, "https://") {
		return nil, expanded, nil
	}
	file, err := tree.Join(s.Path, expanded)
	return tree.Follow(s.Tree), file, err
}

// files are the texts that a name leads to: none when there is no such file, several for a pattern, in order of their
// paths.
func (s *source) files(ctx context.Context, name, what string) ([]Values, error) {
	root, file, err := s.locate(name)
	if err != nil {
		return nil, &job.Error{Reason: fmt.Sprintf("%s %s: %v", what, name, err)}
	}
	if root == nil {
		f, err := job.FetchFrom(ctx, s.Fetch, job.Locator{Kind: job.LocateHTTP, URL: file})
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", what, name, err)
		}
		text, err := s.read(f, "resource", name)
		return []Values{text}, err
	}
	e, ok, err := tree.Exists(root, file)
	switch {
	case err != nil:
		return nil, &job.Error{Reason: fmt.Sprintf("%s %s: %v", what, name, err)}
	case ok && e.Kind != tree.File:
		return nil, &job.Error{Reason: fmt.Sprintf("%s %s: %s is a %s", what, name, file, e.Kind)}
	case ok:
		text, err := s.read(root, file, file)
		return []Values{text}, err
	case strings.ContainsAny(file, "*?[{"):
		return s.glob(root, file, what)
	}
	return nil, nil
}

func (s *source) read(root tree.FS, file, shown string) (Values, error) {
	data, err := root.ReadFile(file)
	if err != nil {
		return Values{}, err
	}
	if s.left -= int64(len(data)); s.left < 0 {
		return Values{}, &job.Error{File: file, Reason: fmt.Sprintf("the rendering reads more than %d MB", job.MaxRead>>20)}
	}
	return Values{File: shown, Text: data}, nil
}

// glob are the files that match a pattern, in which ** stands for any number of folders.
func (s *source) glob(root tree.FS, pattern, what string) ([]Values, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, &job.Error{Reason: fmt.Sprintf("%s: pattern %s can't be read", what, pattern)}
	}
	base, _ := doublestar.SplitPattern(pattern)
	if e, ok, err := tree.Exists(root, path.Clean(base)); err != nil || !ok || e.Kind != tree.Dir {
		return nil, err
	}
	var names []string
	err := tree.Walk(root, path.Clean(base), func(name string, e tree.Entry) error {
		if e.Kind == tree.Link {
			target, err := root.Stat(name)
			if err != nil {
				return nil // a link that leads nowhere matches nothing
			}
			e = target
		}
		if e.Kind == tree.File && doublestar.MatchUnvalidated(pattern, name) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var all []Values
	for _, name := range names {
		text, err := s.read(root, name, name)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}
