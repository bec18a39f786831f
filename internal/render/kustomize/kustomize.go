// Package kustomize owns the rendering of kustomizations with the kustomize library. It reads through tree.FS, asks the job's
// Fetcher for everything that lies elsewhere and a ChartRenderer for Helm charts, and runs no program. It imports values and
// the renderers' shared packages, no other renderer.
package kustomize

import (
	"context"
	"fmt"
	"path"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// HelmChart is an entry of helmCharts with everything that it names read.
type HelmChart struct {
	// Tree and Path are where the chart lies.
	Tree tree.FS
	Path string
	// Archived says that the chart comes from a repository, not from the source.
	Archived bool
	// Name is the chart's name in the kustomization, for messages.
	Name string
	// ReleaseName, or NameTemplate, or neither.
	ReleaseName, NameTemplate string
	Namespace                 string
	// Values are texts laid over the chart's values, in order.
	Values []ValuesText
	// KubeVersion and APIVersions are what the chart sees of the cluster.
	KubeVersion string
	APIVersions []string

	IncludeCRDs, SkipHooks, SkipTests bool
}

// ValuesText is YAML and the file it comes from.
type ValuesText struct {
	File string
	Text []byte
}

// ChartRenderer gives the text of helm template for a chart.
type ChartRenderer func(ctx context.Context, c HelmChart) ([]byte, error)

// Render builds the kustomization in the folder in.Path with the options of spec.source.kustomize, which are laid over the
// kustomization as kustomize edit would. The objects are those of kustomize build --enable-helm of the library's version, in
// its order; those of its helmCharts come from charts. Remote resources, bases and components come from in.Fetch; of the
// parameters in their URLs ref and version count, timeout and submodules do not: the Fetcher's bounds hold, and submodules
// are there. Generators and transformers other than kustomize's own are refused.
//
// Origin.File of an object is the kustomization that was built; the library does not tell more.
func Render(ctx context.Context, in job.Input, charts ChartRenderer) (job.Output, error) {
	text, at, err := build(ctx, in, charts)
	if err != nil {
		return job.Output{}, err
	}
	objects, warnings, err := manifest.Parse("", text, manifest.Options{MaxBytes: job.MaxRendered, MaxObjects: job.MaxObjects})
	if err != nil {
		return job.Output{}, resultError(at, err)
	}
	for i := range objects {
		objects[i].Origin = manifest.Origin{File: at}
	}
	for i := range warnings {
		warnings[i] = at + ": " + warnings[i]
	}
	if o := in.Source.Kustomize; o != nil && o.Version != "" && o.Version != version {
		warnings = append(warnings, fmt.Sprintf("spec.source.kustomize.version: %s is not available, the build is that of %s", o.Version, version))
	}
	return job.Output{Objects: objects, Warnings: warnings, Type: v1alpha1.SourceTypeKustomize}, nil
}

// FileOf is the path of the kustomization file of a folder; empty when there is none. More than one are an error.
func FileOf(f tree.FS, dir string) (string, error) {
	found := ""
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(dir, base)
		e, ok, err := tree.Exists(f, name)
		if err != nil {
			return "", err
		}
		if !ok || e.Kind == tree.Dir {
			continue
		}
		if found != "" {
			return "", &job.Error{File: name, Reason: fmt.Sprintf("%s is there as well, but a folder has one kustomization: remove one of them", path.Base(found))}
		}
		found = name
	}
	return found, nil
}
