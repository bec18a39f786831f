package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// inflate renders the charts of the kustomization. Their objects become a component, the first one: components come when
// kustomize would have run its generators, and before it transforms anything.
func (r *references) inflate() error {
	k := r.kustomization
	globals := types.HelmGlobals{}
	if k.HelmGlobals != nil {
		globals = *k.HelmGlobals
	}
	// Charts of the field come before those of generators.
	fromGenerators := r.inflated
	r.inflated = nil
	for _, c := range k.HelmCharts {
		if c.Namespace == "" {
			c.Namespace = k.Namespace
		}
		if c.Namespace == "" {
			c.Namespace = r.place.namespace
		}
		if err := r.chart("helmCharts", globals, c); err != nil {
			return err
		}
	}
	texts := slices.Concat(r.inflated, fromGenerators)
	if len(k.HelmCharts) == 0 && len(texts) == 0 {
		return nil
	}
	r.hasCharts, r.changed = true, true
	k.HelmCharts, k.HelmGlobals = nil, nil
	dir := r.chartsDir()
	r.remember(dir, laidIn{chartsOf: r.place.file})
	component := types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.ComponentVersion, Kind: types.ComponentKind}}
	for i, text := range texts {
		if len(text) == 0 {
			continue
		}
		name := fmt.Sprintf("%d.yaml", i)
		component.Resources = append(component.Resources, name)
		r.space.laid[dir+"/"+name] = text
	}
	if len(component.Resources) == 0 {
		return nil
	}
	text, err := yaml.Marshal(component)
	if err != nil {
		return r.place.fail("helmCharts: %v", err)
	}
	r.space.laid[dir+"/"+konfig.DefaultKustomizationFileName()] = text
	k.Components = append([]string{relative(r.place.dir, dir)}, k.Components...)
	return nil
}

// chart renders one chart.
func (r *references) chart(field string, globals types.HelmGlobals, c types.HelmChart) error {
	fail := func(err error) error { return r.place.fail("%s: chart %s: %v", field, c.Name, err) }
	if c.Name == "" {
		return r.place.fail("%s: a chart has no name", field)
	}
	if c.ReleaseName != "" && c.NameTemplate != "" {
		return fail(errors.New("releaseName and nameTemplate are both set"))
	}
	if r.charts == nil {
		return fail(errors.New("charts are not rendered here"))
	}
	h, err := r.locate(globals, c)
	if err != nil {
		return fail(err)
	}
	if h.Values, err = r.values(field, h, c); err != nil {
		var placed *job.Error
		if errors.As(err, &placed) {
			return err
		}
		return fail(err)
	}
	text, err := r.charts(r.ctx, h)
	if err != nil {
		return fail(err)
	}
	marked, err := r.exclusively(func() ([]byte, error) { return markCharts(text) })
	if err != nil {
		return fail(err)
	}
	r.inflated = append(r.inflated, marked)
	return nil
}

// locate finds the chart below chartHome, or asks its repository.
func (r *references) locate(globals types.HelmGlobals, c types.HelmChart) (HelmChart, error) {
	h := HelmChart{
		Name: c.Name, ReleaseName: c.ReleaseName, NameTemplate: c.NameTemplate, Namespace: c.Namespace,
		KubeVersion: c.KubeVersion, APIVersions: c.ApiVersions,
		IncludeCRDs: c.IncludeCRDs, SkipHooks: c.SkipHooks, SkipTests: c.SkipTests,
	}
	r.capabilities(&h)
	home := globals.ChartHome
	if home == "" {
		home = types.HelmDefaultHome
	}
	local := path.Join(home, c.Name)
	if c.Version != "" && c.Repo != "" {
		local = path.Join(home, c.Name+"-"+c.Version, c.Name)
	}
	if real, kind, err := r.here(local); err == nil && kind == tree.Dir {
		h.Tree, h.Path, err = r.space.split(real)
		return h, err
	}
	if c.Repo == "" {
		return h, fmt.Errorf("it has no repo, and there is no folder %s", local)
	}
	version := c.Version
	if version == "" && c.Devel {
		version = ">0.0.0-0" // pre-releases too
	}
	at, err := r.fetch(job.Locator{Kind: job.LocateChart, URL: strings.TrimSuffix(c.Repo, "/"), Chart: c.Name, Version: version})
	if err != nil {
		return h, err
	}
	h.Archived = true
	h.Tree, h.Path, err = r.space.split(at)
	return h, err
}

// capabilities fills in what the chart does not say by the application's word; the cluster's comes after that.
func (r *references) capabilities(h *HelmChart) {
	o := r.in.Source.Kustomize
	if h.KubeVersion == "" && o != nil {
		h.KubeVersion = o.KubeVersion
	}
	if len(h.APIVersions) == 0 && o != nil {
		h.APIVersions = o.APIVersions
	}
}

// values are the texts laid over the chart's own values: valuesFile or else the chart's, merged with valuesInline, then
// additionalValuesFiles.
func (r *references) values(field string, h HelmChart, c types.HelmChart) ([]ValuesText, error) {
	first, err := r.valuesFile(field, h, c)
	if err != nil {
		return nil, err
	}
	if len(c.ValuesInline) > 0 {
		text := first.Text
		if first.Text, err = r.exclusively(func() ([]byte, error) { return mergeValues(c, text) }); err != nil {
			return nil, err
		}
		first.File = r.place.file
	}
	all := []ValuesText{first}
	for _, name := range c.AdditionalValuesFiles {
		v, err := r.valuesText(field+": additionalValuesFiles", name)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func (r *references) valuesFile(field string, h HelmChart, c types.HelmChart) (ValuesText, error) {
	if c.ValuesFile != "" {
		return r.valuesText(field+": valuesFile", c.ValuesFile)
	}
	name := path.Join(h.Path, "values.yaml")
	text, err := tree.Follow(h.Tree).ReadFile(name)
	if isMissing(err) {
		return ValuesText{File: name}, nil
	}
	return ValuesText{File: name, Text: text}, err
}

func (r *references) valuesText(field, name string) (ValuesText, error) {
	to, err := r.file(field, name)
	if err != nil {
		return ValuesText{}, err
	}
	text, err := r.read(path.Join(r.place.dir, to))
	return ValuesText{File: name, Text: text}, err
}

// mergeValues is kustomize's reading of valuesMerge: override lets valuesInline win, merge the file, replace takes
// valuesInline alone.
func mergeValues(c types.HelmChart, file []byte) ([]byte, error) {
	if c.ValuesMerge == "replace" {
		return yaml.Marshal(c.ValuesInline)
	}
	inline, err := kyaml.FromMap(c.ValuesInline)
	if err != nil {
		return nil, fmt.Errorf("valuesInline: %w", err)
	}
	fromFile, err := kyaml.Parse(string(file))
	if errors.Is(err, io.EOF) { // nothing but comments
		fromFile, err = kyaml.Parse("{}")
	}
	if err != nil {
		return nil, fmt.Errorf("values file: %w", err)
	}
	var merged *kyaml.RNode
	switch c.ValuesMerge {
	case "", "override":
		merged, err = merge2.Merge(inline, fromFile, kyaml.MergeOptions{})
	case "merge":
		merged, err = merge2.Merge(fromFile, inline, kyaml.MergeOptions{})
	default:
		return nil, fmt.Errorf("valuesMerge is %q, not one of merge, override and replace", c.ValuesMerge)
	}
	if err != nil {
		return nil, fmt.Errorf("valuesInline: %w", err)
	}
	m, err := merged.Map()
	if err != nil {
		return nil, fmt.Errorf("valuesInline: %w", err)
	}
	return yaml.Marshal(m)
}

// markCharts gives the objects of a chart the annotation by which kustomize leaves their namespace to the chart. It takes the
// annotation away itself in the end.
func markCharts(text []byte) ([]byte, error) {
	m, err := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()).NewResMapFromBytes(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, o := range m.Resources() {
		if err := o.PipeE(kyaml.SetAnnotation(konfig.HelmGeneratedAnnotation, "true")); err != nil {
			return nil, err
		}
		doc, err := o.RNode.String()
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.WriteString(doc)
	}
	return out.Bytes(), nil
}
