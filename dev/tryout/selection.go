package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// selection says what to take from which repository.
type selection struct {
	Repositories []struct {
		// URL where the repository is public.
		URL   string `json:"url"`
		Items []item `json:"items"`
	} `json:"repositories"`
}

// item is one folder of a repository: manifests, a kustomization or a chart.
type item struct {
	Path string `json:"path"`
	// Ref is a branch, tag or commit; default the one that is checked out.
	Ref string `json:"ref,omitempty"`
	// Name of the application and its namespace; default the folder's.
	Name string `json:"name,omitempty"`
	// Repository is where the chart in Path is published: the URL of a Helm repository, or oci:// and a path. The chart is
	// packaged, offered there and deployed from there. Without it the folder is deployed from Git.
	Repository string `json:"repository,omitempty"`
	// Version to package the chart as, for charts whose sources hold a stand-in; default the chart's own.
	Version string `json:"version,omitempty"`
	// ServeOnly offers the chart to others and deploys nothing.
	ServeOnly bool `json:"serveOnly,omitempty"`
	// Source is laid into the application's source: helm, kustomize or directory options.
	Source v1alpha1.ApplicationSource `json:"source,omitzero"`
}

func readSelection(file string) (selection, error) {
	var s selection
	data, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	for _, r := range s.Repositories {
		for _, i := range r.Items {
			if i.Path == "" {
				return s, fmt.Errorf("%s: repository %s: an item has no path", file, r.URL)
			}
		}
	}
	return s, nil
}

// of are the items of a repository; false when the selection does not name it.
func (s selection) of(c *checkout) ([]item, bool) {
	for _, r := range s.Repositories {
		if u, err := publicURL(r.URL); err == nil && u.String() == c.url.String() {
			return r.Items, true
		}
	}
	return nil, false
}
