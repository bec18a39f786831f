package render

import (
	"context"

	"github.com/lockstep-cd/lockstep/internal/render/helm"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
)

// chartRenderer lets Kustomize render charts with the Helm renderer; neither imports the other.
func chartRenderer(in job.Input) kustomize.ChartRenderer {
	return func(ctx context.Context, c kustomize.HelmChart) ([]byte, error) {
		r := helm.Release{
			Chart: c.Tree, Path: c.Path, Archived: c.Archived,
			Name: c.ReleaseName, NameTemplate: c.NameTemplate, Namespace: c.Namespace,
			KubeVersion: c.KubeVersion, APIVersions: c.APIVersions,
			IncludeCRDs: c.IncludeCRDs, SkipHooks: c.SkipHooks, SkipTests: c.SkipTests,
			Cluster: in.Capabilities, Asked: in.Asked, Fetch: in.Fetch,
		}
		for _, v := range c.Values {
			r.Values = append(r.Values, helm.Values{File: v.File, Text: v.Text})
		}
		return helm.Template(ctx, r)
	}
}
