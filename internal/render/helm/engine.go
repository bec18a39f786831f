package helm

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// document is one rendered text.
type document struct {
	// source is Helm's name of the file: shop/charts/web/templates/a.yaml.
	source string
	text   string
}

// rendered is what a chart renders to.
type rendered struct {
	// chart is the name of the chart.
	chart string
	// crds are whole files of crds folders.
	crds []document
	// objects are in the order Helm installs them.
	objects, hooks []document
	warnings       []string
	// random tells that a template calls a function that answers something else each time.
	random bool
}

// render does the work of Template and Render. What the Helm library does can't be interrupted, so it runs aside.
func (r Release) render(ctx context.Context) (rendered, error) {
	r, err := r.named()
	if err != nil {
		return rendered{}, err
	}
	values, err := merge(r.Values)
	if err != nil {
		return rendered{}, err
	}
	if err := set(values, r.Parameters); err != nil {
		return rendered{}, err
	}
	l := loading{reader: reader{left: job.MaxRead - r.spent}, source: r.Chart, fetch: r.Fetch}
	c, err := l.load(ctx, r.Path, r.Archived)
	if err != nil {
		return rendered{}, err
	}
	type answer struct {
		rendered
		error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() {
			// A panic's own text may hold values.
			if recover() != nil {
				done <- answer{error: &job.Error{File: r.Path, Reason: "the Helm library can't cope with this chart and stopped"}}
			}
		}()
		out, err := r.execute(ctx, c, values)
		done <- answer{out, err}
	}()
	select {
	case a := <-done:
		return a.rendered, a.error
	case <-ctx.Done():
		return rendered{}, fmt.Errorf("%s: the chart was not rendered in time: %w", r.Path, ctx.Err())
	}
}

func (r Release) execute(ctx context.Context, c *chart.Chart, values map[string]any) (rendered, error) {
	file := path.Join(r.Path, "Chart.yaml")
	if c.Metadata.Type == "library" {
		return rendered{}, &job.Error{File: file, Reason: "library charts can't be installed"}
	}
	caps, err := r.capabilities()
	if err != nil {
		return rendered{}, err
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return rendered{}, valuesError(r.Path, err)
	}
	keepNulls(c, values)
	if c.Metadata.KubeVersion != "" {
		r.noteKubeVersion()
	}
	options := common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	top, err := commonutil.ToRenderValuesWithSchemaValidation(c, values, options, caps, true)
	if err != nil {
		return rendered{}, valuesError(r.Path, err)
	}
	if !r.SkipSchema {
		coalesced, err := top.Table("Values")
		if err != nil {
			return rendered{}, valuesError(r.Path, err)
		}
		if err := checkSchemas(c, coalesced, r.Path); err != nil {
			return rendered{}, err
		}
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return rendered{}, &job.Error{File: file, Reason: fmt.Sprintf("the chart needs Kubernetes %s, and this is %s", want, caps.KubeVersion.Version)}
	}
	r.observe(c, top, caps)
	texts, err := engine.Engine{}.RenderWithContext(ctx, c, top)
	if err != nil {
		return rendered{}, templateError(c.Name(), r.Path, err)
	}
	out, err := r.sort(c, texts)
	out.random = callsRandom(c)
	return out, err
}

func (r Release) sort(c *chart.Chart, texts map[string]string) (rendered, error) {
	out := rendered{chart: c.Name()}
	size := 0
	if r.IncludeCRDs {
		for _, crd := range c.CRDObjects() {
			out.crds = append(out.crds, document{source: crd.Filename, text: string(crd.File.Data)})
			size += len(crd.File.Data)
		}
	}
	for name, text := range texts {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(texts, name)
			continue
		}
		size += len(text)
	}
	if size > job.MaxRendered {
		return rendered{}, &job.Error{File: r.Path, Reason: fmt.Sprintf("the chart renders to more than %d MB", job.MaxRendered>>20)}
	}
	hooks, objects, err := releaseutil.SortManifests(texts, nil, releaseutil.InstallOrder)
	if err != nil {
		return rendered{}, sortError(c.Name(), r.Path, texts, err)
	}
	for _, m := range objects {
		out.objects = append(out.objects, document{source: m.Name, text: m.Content})
	}
	for _, h := range hooks {
		if !r.SkipHooks && (!r.SkipTests || !slices.Contains(h.Events, release.HookTest)) {
			out.hooks = append(out.hooks, document{source: h.Path, text: h.Manifest})
		}
	}
	out.warnings = leftOut(texts, hooks, len(objects), r.Path, c.Name())
	return out, nil
}

// leftOut warns of hooks of a kind that Helm does not know, which it drops without a word.
func leftOut(texts map[string]string, hooks []*release.Hook, objects int, at, chartName string) []string {
	all := map[string]int{}
	total := 0
	for name, text := range texts {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		all[name] = len(releaseutil.SplitManifests(text))
		total += all[name]
	}
	if total == len(hooks)+objects {
		return nil
	}
	var warnings []string
	for name, text := range texts {
		if all[name] == 0 {
			continue
		}
		for _, kind := range unknownHooks(name, text) {
			warnings = append(warnings, fmt.Sprintf("%s: an object is left out: Helm knows no hook %q", sourcePath(chartName, at, name), kind))
		}
	}
	sort.Strings(warnings)
	return warnings
}

// unknownHooks are the hook annotations in a template's text that Helm's own sorting drops.
func unknownHooks(name, text string) []string {
	var kinds []string
	for _, doc := range releaseutil.SplitManifests(text) {
		hooks, objects, err := releaseutil.SortManifests(map[string]string{name: doc}, nil, releaseutil.InstallOrder)
		if err != nil || len(hooks)+len(objects) > 0 {
			continue
		}
		var head releaseutil.SimpleHead
		if err := unmarshal(doc, &head); err == nil && head.Metadata != nil {
			kinds = append(kinds, head.Metadata.Annotations[release.HookAnnotation])
		}
	}
	return kinds
}
