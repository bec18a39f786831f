package helm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// capabilities are what the chart sees of the cluster.
func (r Release) capabilities() (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	if version := first(r.KubeVersion, r.Cluster.KubeVersion); version != "" {
		v, err := common.ParseKubeVersion(version)
		if err != nil {
			return nil, &job.Error{Reason: fmt.Sprintf("Kubernetes version %q: %v", version, err)}
		}
		caps.KubeVersion = *v
	}
	apis := r.APIVersions
	if len(apis) == 0 {
		apis = r.Cluster.APIVersions
	}
	caps.APIVersions = slices.Concat(caps.APIVersions, common.VersionSet(apis))
	return caps, nil
}

func (r Release) noteKubeVersion() {
	if r.KubeVersion == "" {
		r.Asked.NoteKubeVersion()
	}
}

// observed stands in for Helm's capabilities in templates. It answers as they do, and notes which APIs are asked for: so
// that a new definition in the cluster concerns only the charts that look for it.
type observed struct {
	KubeVersion common.KubeVersion
	APIVersions *observedAPIs
	HelmVersion any
}

// observedAPIs is Helm's list of APIs behind its one method.
type observedAPIs struct {
	all   common.VersionSet
	asked *job.Asked
}

// Has is Helm's method: it tells whether the cluster has an API.
func (o *observedAPIs) Has(name string) bool {
	if common.DefaultVersionSet.Has(name) {
		return true // whatever the cluster has
	}
	o.asked.NoteAPI(name)
	return o.all.Has(name)
}

// String and MarshalJSON are for a template that writes out everything that it was given.
func (o *observedAPIs) String() string {
	o.noteAll()
	return fmt.Sprint([]string(o.all))
}

// MarshalJSON implements json.Marshaler.
func (o *observedAPIs) MarshalJSON() ([]byte, error) {
	o.noteAll()
	return json.Marshal(o.all)
}

func (o *observedAPIs) noteAll() {
	o.asked.NoteAPIs()
	o.asked.NoteKubeVersion() // which is written out with them
}

// observe puts capabilities that take notes in the place of caps, or notes that all of them decide.
func (r Release) observe(c *chart.Chart, values map[string]any, caps *common.Capabilities) {
	if r.Asked == nil {
		return
	}
	use := usesOf(c, values["Values"])
	if use.version || use.any {
		r.noteKubeVersion()
	}
	switch {
	case len(r.APIVersions) > 0: // the cluster's are not used
	case use.any:
		r.Asked.NoteAPIs()
	default:
		values["Capabilities"] = &observed{
			KubeVersion: caps.KubeVersion, APIVersions: &observedAPIs{all: caps.APIVersions, asked: r.Asked}, HelmVersion: caps.HelmVersion,
		}
	}
}

// uses tells how a chart uses the capabilities, as far as its texts show.
type uses struct {
	// version of Kubernetes is named.
	version bool
	// any is set where something else is done with the capabilities than the few things that can be observed.
	any bool
}

// mention finds the capabilities, with a dot or a quote before them, and which of the known uses follows.
func mention() *regexp.Regexp {
	return regexp.MustCompile("[.\"'`]Capabilities(\\.KubeVersion\\b|\\.HelmVersion\\b|\\.APIVersions\\.Has\\b)?")
}

// usesOf looks through everything that may become a template: templates, files, values, those of dependencies too.
func usesOf(c *chart.Chart, values any) uses {
	var u uses
	find := mention()
	look := func(text []byte) {
		for _, m := range find.FindAllSubmatch(text, -1) {
			switch string(m[1]) {
			case "":
				u.any = true
			case ".KubeVersion":
				u.version = true
			}
		}
	}
	if text, err := json.Marshal(values); err == nil {
		look(text)
	}
	var visit func(*chart.Chart)
	visit = func(c *chart.Chart) {
		for _, f := range c.Templates {
			look(f.Data)
		}
		for _, f := range c.Files {
			look(f.Data)
		}
		for _, d := range c.Dependencies() {
			visit(d)
		}
	}
	visit(c)
	return u
}
