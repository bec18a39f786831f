// Package render owns the choice of the renderer for a source, and the overrides that lie in the repository beside the
// manifests. It imports the renderers; they do not import it.
package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/directory"
	"github.com/lockstep-cd/lockstep/internal/render/helm"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
)

// ErrPluginsOff is the answer for a source that wants a config management plugin.
var ErrPluginsOff = errors.New("spec.source.plugin: config management plugins are off here; an administrator can enable them")

// Render renders a source with the tool that its spec names, or that its files call for. Overrides in .argocd-source.yaml and
// .argocd-source-<application>.yaml in the source's folder are laid over the spec first.
func Render(ctx context.Context, in job.Input) (job.Output, error) {
	c, err := Choose(in)
	if err != nil {
		return job.Output{}, err
	}
	out, err := Run(ctx, c.Tool, c.Input)
	return c.Finish(out), err
}

// Choice is a source with everything decided that comes before its tool runs.
type Choice struct {
	// Tool renders the source. It is never Plugin.
	Tool v1alpha1.ApplicationSourceType
	// Input has the overrides merged in.
	Input    job.Input
	warnings []string
}

// Choose finds the tool for a source. It reads a few small files as data and runs nothing that they could steer.
func Choose(in job.Input) (Choice, error) {
	if err := checkPath(in.Tree, in.Path); err != nil {
		return Choice{}, err
	}
	source, warnings, err := withOverrides(in)
	if err != nil {
		return Choice{}, err
	}
	in.Source = source
	tool, err := toolOf(in)
	if err != nil {
		return Choice{}, err
	}
	if tool == v1alpha1.SourceTypePlugin {
		return Choice{}, ErrPluginsOff
	}
	return Choice{Tool: tool, Input: in, warnings: warnings}, nil
}

// Plain tells whether the source is data alone: a folder of YAML and JSON, which is parsed and runs nothing.
func (c Choice) Plain() bool {
	return c.Tool == v1alpha1.SourceTypeDirectory && directory.Plain(c.Input)
}

// Finish adds to what the tool gave what was found before it ran.
func (c Choice) Finish(out job.Output) job.Output {
	out.Warnings = append(c.warnings, out.Warnings...)
	return out
}

// Run renders with the tool that Choose found, within the bounds of a rendering; twice where templates make things up.
func Run(ctx context.Context, tool v1alpha1.ApplicationSourceType, in job.Input) (job.Output, error) {
	out, err := run(ctx, tool, in)
	if err != nil {
		return job.Output{}, err
	}
	if out.Random {
		again, err := run(ctx, tool, in)
		if err != nil {
			return job.Output{}, err
		}
		var remarks []string
		out.Generated, remarks = generated(out, again)
		out.Warnings = append(out.Warnings, remarks...)
	}
	if err := CheckBounds(in.Path, out.Objects); err != nil {
		return job.Output{}, err
	}
	return out, nil
}

func run(ctx context.Context, tool v1alpha1.ApplicationSourceType, in job.Input) (job.Output, error) {
	in.Asked = &job.Asked{}
	out, err := with(ctx, tool, in)
	out.Asked = in.Asked
	return out, err
}

func with(ctx context.Context, tool v1alpha1.ApplicationSourceType, in job.Input) (job.Output, error) {
	switch tool {
	case v1alpha1.SourceTypeHelm:
		return helm.Render(ctx, in)
	case v1alpha1.SourceTypeKustomize:
		return kustomize.Render(ctx, in, chartRenderer(in))
	}
	return directory.Render(ctx, in)
}

// toolOf is the tool that the spec names; without one, the tool that the files call for.
func toolOf(in job.Input) (v1alpha1.ApplicationSourceType, error) {
	var tools []v1alpha1.ApplicationSourceType
	var fields []string
	named := func(set bool, tool v1alpha1.ApplicationSourceType) {
		if set {
			tools = append(tools, tool)
			fields = append(fields, strings.ToLower(string(tool)))
		}
	}
	named(in.Source.Helm != nil, v1alpha1.SourceTypeHelm)
	named(in.Source.Kustomize != nil, v1alpha1.SourceTypeKustomize)
	named(in.Source.Directory != nil, v1alpha1.SourceTypeDirectory)
	named(in.Source.Plugin != nil, v1alpha1.SourceTypePlugin)
	switch len(tools) {
	case 0:
		if in.Source.Chart != "" {
			return v1alpha1.SourceTypeHelm, nil
		}
		return Detect(in.Tree, in.Path)
	case 1:
		return tools[0], nil
	}
	return "", fmt.Errorf("spec.source: %s are both set, but a source has one tool: keep one of them", strings.Join(fields, " and "))
}

// CheckBounds tells whether objects, rendered at a path, are within what an application may have.
func CheckBounds(at string, objects []manifest.Object) error {
	if len(objects) > job.MaxObjects {
		return &job.Error{File: at, Reason: fmt.Sprintf("renders to %d objects, more than the %d that are allowed", len(objects), job.MaxObjects)}
	}
	left := job.MaxRendered
	for _, o := range objects {
		if left -= size(o.Object); left < 0 {
			return &job.Error{File: at, Reason: fmt.Sprintf("renders to more than the %d bytes that are allowed", job.MaxRendered)}
		}
	}
	return nil
}

// size is about what v takes as JSON, in bytes.
func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		n := 2
		for k, item := range v {
			n += len(k) + 4 + size(item)
		}
		return n
	case []any:
		n := 2
		for _, item := range v {
			n += 1 + size(item)
		}
		return n
	case string:
		return len(v) + 2
	}
	return 4
}
