package helm

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// Render renders the chart at the job's path with the options of spec.source.helm. The values of the chart come first;
// over them lie valueFiles in their order, then valuesObject or else values, then parameters and fileParameters. Objects
// come in the order of helm template: CRDs, objects in install order, hooks. Origin has the template, not the line.
func Render(ctx context.Context, in job.Input) (job.Output, error) {
	options := v1alpha1.ApplicationSourceHelm{}
	if in.Source.Helm != nil {
		options = *in.Source.Helm
	}
	s := source{Input: in, options: options, left: job.MaxRead}
	values, err := s.values(ctx)
	if err != nil {
		return job.Output{}, err
	}
	parameters, err := s.parameters(ctx)
	if err != nil {
		return job.Output{}, err
	}
	r := Release{
		Chart: in.Tree, Path: in.Path, Archived: in.Source.Chart != "",
		Name: first(options.ReleaseName, in.AppName), Namespace: first(options.Namespace, in.Namespace),
		Values: values, Parameters: parameters,
		KubeVersion: options.KubeVersion, APIVersions: options.APIVersions, Cluster: in.Capabilities, Asked: in.Asked,
		IncludeCRDs: !options.SkipCrds, SkipTests: options.SkipTests, SkipSchema: options.SkipSchemaValidation,
		Fetch: in.Fetch, spent: job.MaxRead - s.left,
	}
	r.Name = s.Substitute(r.Name)
	text, err := r.render(ctx)
	if err != nil {
		return job.Output{}, err
	}
	return text.parse(in.Path)
}

func first(names ...string) string {
	for _, name := range names {
		if name != "" {
			return name
		}
	}
	return ""
}

// parse reads the objects out of the rendered text.
func (r rendered) parse(at string) (job.Output, error) {
	out := job.Output{Type: v1alpha1.SourceTypeHelm, Warnings: r.warnings, Random: r.random}
	for _, d := range r.crds {
		if err := d.parse(sourcePath(r.chart, at, d.source), &out); err != nil {
			return job.Output{}, err
		}
	}
	for _, documents := range [][]document{r.objects, r.hooks} {
		for _, d := range documents {
			before := len(out.Objects)
			if err := d.parse(sourcePath(r.chart, at, d.source), &out); err != nil {
				return job.Output{}, unplaced(err)
			}
			for i := range out.Objects[before:] {
				out.Objects[before+i].Origin.Line = 0 // a line of rendered text leads nowhere in the source
			}
		}
	}
	if len(out.Objects) > job.MaxObjects {
		return job.Output{}, &job.Error{File: at, Reason: fmt.Sprintf("the chart renders to %d objects, more than %d", len(out.Objects), job.MaxObjects)}
	}
	return out, nil
}

var warnedAt = regexp.MustCompile(`^(.*):(\d+): `)

func (d document) parse(file string, out *job.Output) error {
	objects, warnings, err := manifest.Parse(file, []byte(d.text), manifest.Options{LastKeyWins: true})
	if err != nil {
		return err
	}
	out.Objects = append(out.Objects, objects...)
	for _, w := range warnings {
		out.Warnings = append(out.Warnings, warnedAt.ReplaceAllString(w, "$1: rendered line $2: "))
	}
	return nil
}

// unplaced is the error of the parser with its line named as one of the rendered text.
func unplaced(err error) error {
	var e *manifest.ParseError
	if !errors.As(err, &e) {
		return err
	}
	reason := e.Err.Error()
	if e.Origin.Line > 0 {
		reason += fmt.Sprintf(" (rendered line %d)", e.Origin.Line)
	}
	return &job.Error{File: path.Clean(e.Origin.File), Object: e.Object, Reason: reason}
}
