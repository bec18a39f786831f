//go:build linux

package pool_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// hostileSource is a source as a stranger might write it.
type hostileSource struct {
	files map[string]string
	// bounds that may end it; without any, want is in the error.
	bounds []pool.Bound
	want   string
}

func chartWith(template string) map[string]string {
	return map[string]string{"a/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "a/templates/x.yaml": template}
}

func treeOf(files map[string]string) tree.Map {
	out := tree.Map{}
	for file, text := range files {
		out[file] = []byte(text)
	}
	return out
}

func hostileSources() map[string]hostileSource {
	computing, growing := []pool.Bound{pool.CPU}, []pool.Bound{pool.Memory, pool.CPU}
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	return map[string]hostileSource{
		"chart that reads a file":         {files: chartWith(object + "data: {x: {{ required \"nothing is there\" (.Files.Get \"/etc/passwd\") }}}\n"), want: "nothing is there"},
		"chart that looks up hosts":       {files: chartWith(object + "data: {x: {{ required \"nothing is there\" (getHostByName \"localhost\") }}}\n"), want: "nothing is there"},
		"chart that reads variables":      {files: chartWith(object + "data: {x: {{ env \"PATH\" }}}\n"), want: `function "env" not defined`},
		"chart that computes":             {files: chartWith(object + "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"), bounds: computing},
		"chart that grows":                {files: chartWith(object + "{{ $l := list }}{{ range until 1000000 }}{{ $l = append $l (repeat 100000 \"x\") }}{{ end }}"), bounds: growing},
		"chart that includes itself":      {files: chartWith(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), want: "a/templates/x.yaml"},
		"kustomization that reads a file": {files: map[string]string{"a/kustomization.yaml": "resources: [/etc/passwd]\n"}, want: "a/kustomization.yaml"},
		"kustomization that climbs":       {files: map[string]string{"a/kustomization.yaml": "resources: [../../../../etc/passwd]\n"}, want: "a/kustomization.yaml"},
		"kustomization that fetches":      {files: map[string]string{"a/kustomization.yaml": "resources: ['https://127.0.0.1:1/x.yaml']\n"}, want: "not available here"},
		"kustomization that clones":       {files: map[string]string{"a/kustomization.yaml": "resources: ['ssh://git@127.0.0.1/x.git']\n"}, want: "not available here"},
		"kustomization that runs a program": {files: map[string]string{
			"a/kustomization.yaml": "transformers: [t.yaml]\n",
			"a/t.yaml":             "apiVersion: x/v1\nkind: T\nmetadata: {name: x, annotations: {config.kubernetes.io/function: \"exec: {path: /bin/true}\"}}\n",
		}, want: "a/"},
		"kustomization that includes itself": {files: map[string]string{"a/kustomization.yaml": "resources: [../a]\n"}, want: "a/kustomization.yaml"},
		"jsonnet that reads a file":          {files: map[string]string{"a/x.jsonnet": "importstr '/etc/passwd'"}, want: "a/x.jsonnet"},
		"jsonnet that climbs":                {files: map[string]string{"a/x.jsonnet": "importstr '../../../../etc/passwd'"}, want: "a/x.jsonnet"},
		"jsonnet that computes":              {files: map[string]string{"a/x.jsonnet": "local f(x) = f(x + 1) tailstrict; f(0)"}, bounds: []pool.Bound{pool.CPU, pool.Memory, pool.Stack}},
		"jsonnet that grows":                 {files: map[string]string{"a/x.jsonnet": "std.foldl(function(a, b) a + a, std.range(0, 60), 'xxxxxxxxxxxxxxxxxxxx')"}, bounds: growing},
	}
}

func TestHostileSourcesCanDoNothing(t *testing.T) {
	// What the tools refuse by themselves has the time that a rendering has, what only a bound ends has little.
	p := newPool(t, pool.Options{Time: 2 * time.Minute, Memory: 256 << 20})
	short := newPool(t, pool.Options{CPU: time.Second, Time: 2 * time.Minute, Memory: 256 << 20})
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	canary, _, _ := strings.Cut(string(passwd), "\n")
	for name, c := range hostileSources() {
		t.Run(name, func(t *testing.T) {
			renderer := p
			if len(c.bounds) > 0 {
				renderer = short
			}
			out, err := renderer.Render(t.Context(), job.Input{Tree: treeOf(c.files), Path: "a", AppName: "web", Project: "evil"})
			if err == nil {
				t.Fatalf("it renders: %v", out.Objects)
			}
			t.Log(err)
			if strings.Contains(err.Error(), canary) {
				t.Error("a file of this machine is in the error")
			}
			var f *pool.Failure
			if !errors.As(err, &f) {
				if len(c.bounds) > 0 || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error is %v, want %q", err, c.want)
				}
				return
			}
			if detected && f.Bound == pool.Lost {
				return // the race detector needs memory of its own, and ends the process that gets none
			}
			for _, b := range c.bounds {
				if f.Bound == b {
					return
				}
			}
			t.Errorf("%s: %v", f.Bound, err)
		})
	}
	for _, renderer := range []*pool.Pool{p, short} {
		if _, err := renderer.Render(t.Context(), good("evil")); err != nil {
			t.Error(err)
		}
	}
}
