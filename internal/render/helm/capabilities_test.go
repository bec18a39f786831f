package helm_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/render/helm"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// TestWhatAChartAsksOfTheCluster: the same text as without taking notes, and the notes say what decides over it.
func TestWhatAChartAsksOfTheCluster(t *testing.T) {
	const monitoring = `{{ if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}m{{ end }}`
	cluster := job.Capabilities{KubeVersion: "v1.36.2", APIVersions: []string{"monitoring.coreos.com/v1", "example.com/v1"}}
	for name, c := range map[string]struct {
		template, values string
		release          helm.Release
		chart            string
		apis             []string
		all, version     bool
	}{
		"nothing":           {template: "x"},
		"one API":           {template: monitoring, apis: []string{"monitoring.coreos.com/v1"}},
		"an API of Helm":    {template: `{{ .Capabilities.APIVersions.Has "apps/v1" }}`},
		"version":           {template: `{{ .Capabilities.KubeVersion.GitVersion }} {{ .Capabilities.KubeVersion }} {{ $.Capabilities.KubeVersion.Minor }}`, version: true},
		"range in metadata": {template: "x", chart: "kubeVersion: '>=1.20'", version: true},
		"in a branch":       {template: `{{ if .Values.on }}` + monitoring + `{{ end }}`},
		"list":              {template: `{{ range .Capabilities.APIVersions }}{{ . }},{{ end }}`, all: true, version: true},
		"variable":          {template: `{{ $c := .Capabilities }}{{ $c.APIVersions.Has "example.com/v1" }}`, all: true, version: true},
		"in values":         {template: `{{ tpl .Values.text . }}`, values: "text: '{{ .Capabilities.APIVersions | toJson }}'", all: true, version: true},
		"everything":        {template: `{{ toJson (omit . "Template" "Files") | sha256sum }}`, all: true, version: true},
		"own words":         {template: monitoring + `{{ .Capabilities.KubeVersion.Version }}`, release: helm.Release{KubeVersion: "1.30", APIVersions: []string{"a/v1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.release
			r.Chart = tree.Map{
				"Chart.yaml":         []byte("{apiVersion: v2, name: x, version: 1.0.0}\n"),
				"values.yaml":        []byte(c.values + "\n"),
				"templates/obj.yaml": []byte("kind: A\ntext: |\n  " + c.template + "\n"),
			}
			if c.chart != "" {
				r.Chart = tree.Overlay(r.Chart, tree.Map{"Chart.yaml": []byte("apiVersion: v2\nname: x\nversion: 1.0.0\n" + c.chart + "\n")})
			}
			r.Cluster = cluster
			plain, err := helm.Template(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			r.Asked = &job.Asked{}
			got, err := helm.Template(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(plain) {
				t.Errorf("another text when notes are taken:\n%s\ninstead of\n%s", got, plain)
			}
			apis := slices.Sorted(maps.Keys(r.Asked.APIs))
			if !slices.Equal(apis, c.apis) || r.Asked.AllAPIs != c.all || r.Asked.KubeVersion != c.version {
				t.Errorf("asked %v, all %v, version %v", apis, r.Asked.AllAPIs, r.Asked.KubeVersion)
			}
		})
	}
}
