package helm

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// defaultName is what helm template calls a release without a name.
const defaultName = "release-name"

// Release is a chart and everything that decides what it renders to.
type Release struct {
	// Chart is the tree the chart lies in, Path its folder there. Dependencies with file:// may lie anywhere in the tree.
	Chart tree.FS
	Path  string
	// Archived says that the chart came out of an archive: .helmignore has done its work already.
	Archived bool
	// Name of the release; empty takes NameTemplate, a Go template, and without one "release-name".
	Name, NameTemplate string
	// Namespace of the release; empty means default.
	Namespace string
	// Values are laid over the chart's own, in order.
	Values []Values
	// Parameters are set last.
	Parameters []Parameter
	// KubeVersion and APIVersions stand in for what the cluster says. APIVersions come on top of those of Kubernetes itself.
	KubeVersion string
	APIVersions []string
	// Cluster is what the chart sees where KubeVersion or APIVersions is empty; without a version, it is the library's.
	Cluster job.Capabilities
	// Asked notes what the chart asks of Cluster; nil notes nothing.
	Asked *job.Asked
	// IncludeCRDs puts the files of crds folders first.
	IncludeCRDs bool
	// SkipHooks leaves out all hooks, SkipTests those for helm test.
	SkipHooks, SkipTests bool
	// SkipSchema leaves values.schema.json unread.
	SkipSchema bool
	// Fetch answers for dependencies that are not in the charts folder; nil refuses them.
	Fetch job.Fetcher
	// spent is what was read for the release already, in bytes.
	spent int64
}

// Template is the text that helm template prints for the release: CRDs, objects in the order they are installed, hooks.
// It returns when ctx ends; the library can't be interrupted and ends in its own time.
func Template(ctx context.Context, r Release) ([]byte, error) {
	out, err := r.render(ctx)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, d := range out.crds {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", d.source, d.text)
	}
	for _, d := range out.objects {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", d.source, d.text)
	}
	result := bytes.NewBufferString(strings.TrimSpace(text.String()) + "\n")
	for _, d := range out.hooks {
		fmt.Fprintf(result, "---\n# Source: %s\n%s\n", d.source, d.text)
	}
	return result.Bytes(), nil
}

// nameFunctions are those of Helm's name templates without the ones that ask this machine or the network.
func nameFunctions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(functions, name)
	}
	return functions
}

// named is r with its name and namespace filled in.
func (r Release) named() (Release, error) {
	if r.Namespace == "" {
		r.Namespace = "default"
	}
	if r.Path == "" {
		r.Path = "."
	}
	if r.Name == "" && r.NameTemplate != "" {
		t, err := template.New("name").Funcs(nameFunctions()).Parse(r.NameTemplate)
		if err != nil {
			return r, &job.Error{Reason: fmt.Sprintf("release name template %q: %v", r.NameTemplate, err)}
		}
		var name strings.Builder
		if err := t.Execute(&name, nil); err != nil {
			return r, &job.Error{Reason: fmt.Sprintf("release name template %q: %v", r.NameTemplate, err)}
		}
		r.Name = name.String()
	}
	if r.Name == "" {
		r.Name = defaultName
	}
	if chartutil.ValidateReleaseName(r.Name) != nil {
		return r, &job.Error{Reason: fmt.Sprintf("release name %q: Helm wants at most 53 lower-case letters, digits, dots and dashes, with a letter or digit at both ends: set spec.source.helm.releaseName", r.Name)}
	}
	return r, nil
}
