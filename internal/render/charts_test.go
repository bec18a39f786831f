package render_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if programDir != "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

var programDir string

// programs builds kustomize and helm of our libraries' versions, once.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "programs"); err != nil {
		return "", err
	}
	programDir = dir
	for name, pkg := range map[string]string{"kustomize": "sigs.k8s.io/kustomize/kustomize/v5", "helm": "helm.sh/helm/v4/cmd/helm"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg)
		build.Dir = "../../test/tools/" + name
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

// program runs kustomize build --enable-helm on a copy of the files.
func program(t *testing.T, files tree.Map, path string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the kustomize and helm programs")
	}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "kustomize"), "build", "--enable-helm", "--helm-command", filepath.Join(bin, "helm"), path)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("kustomize: %v\n%s", err, errs.String())
	}
	return out.String()
}

// chart is a chart that shows everything a kustomization can decide.
func chart(at string) tree.Map {
	return tree.Map{
		at + "/Chart.yaml":  []byte("apiVersion: v2\nname: show\nversion: 1.2.3\n"),
		at + "/values.yaml": []byte("text: chart\nlist: [a, b]\nnested: {left: chart, right: chart}\nname: settings\n"),
		at + "/crds/crd.yaml": []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: shows.example.com}\nspec:\n" +
			"  group: example.com\n  names: {kind: Show, plural: shows}\n  scope: Namespaced\n  versions: []\n"),
		at + "/templates/all.yaml": []byte(`apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.name }}
  namespace: {{ .Release.Namespace }}
  labels: {team: red}
data:
  release: {{ .Release.Name }}
  kube: {{ .Capabilities.KubeVersion.Version }}
  has: {{ .Capabilities.APIVersions.Has "example.com/v1" | quote }}
  values: {{ omit .Values "name" | toJson | quote }}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Values.name }}-front"}
spec: {ports: [{port: 80}]}
`),
		at + "/templates/hook.yaml": []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: pre-install}\nspec: {containers: []}\n"),
		at + "/templates/test.yaml": []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: test\n  annotations: {helm.sh/hook: test}\nspec: {containers: []}\n"),
	}
}

func TestChartsEqualTheProgram(t *testing.T) {
	for name, kustomizations := range map[string]map[string]string{
		"local":   {"app": "helmCharts:\n- {name: show, releaseName: rel}\n"},
		"no name": {"app": "helmCharts:\n- {name: show}\n"},
		"everything": {"app": "namespace: over\nnamePrefix: p-\nhelmCharts:\n- name: show\n  releaseName: rel\n  namespace: own\n  includeCRDs: true\n  kubeVersion: 1.30.1\n" +
			"  apiVersions: [example.com/v1]\n  skipTests: true\n  valuesFile: my.yaml\n  additionalValuesFiles: [more.yaml]\n"},
		"no hooks":       {"app": "helmCharts:\n- {name: show, releaseName: rel, skipHooks: true}\n"},
		"name template":  {"app": "helmCharts:\n- {name: show, nameTemplate: 'from-{{ \"X\" | lower }}'}\n"},
		"inline":         {"app": "helmCharts:\n- name: show\n  releaseName: rel\n  valuesInline: {nested: {left: inline}, list: [c], extra: 12345678901}\n"},
		"inline merges":  {"app": "helmCharts:\n- name: show\n  releaseName: rel\n  valuesMerge: merge\n  valuesFile: my.yaml\n  valuesInline: {text: inline, nested: {left: inline, up: inline}}\n"},
		"inline replace": {"app": "helmCharts:\n- name: show\n  releaseName: rel\n  valuesMerge: replace\n  valuesFile: my.yaml\n  valuesInline: {text: inline}\n"},
		"chart home":     {"app": "helmGlobals: {chartHome: below/charts}\nhelmCharts:\n- {name: show, releaseName: rel}\n"},
		"two, in order": {"app": "sortOptions: {order: fifo}\nresources: [cm.yaml]\nconfigMapGenerator:\n- {name: g, literals: [a=b]}\n" +
			"helmCharts:\n- {name: show, releaseName: one}\n- {name: show, releaseName: two, namespace: two, skipHooks: true, skipTests: true, valuesInline: {name: other}}\npatches:\n" +
			"- target: {kind: Service}\n  patch: '[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"x\": \"y\"}}]'\nnameSuffix: -n\n"},
		"old field": {"app": "helmChartInflationGenerator:\n- {chartName: show, releaseName: rel, valuesLocal: {text: old}}\n"},
		"generator": {"app": "generators:\n- |\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: g}\n  name: show\n  releaseName: rel\n  valuesInline: {text: generated}\n"},
		"inherited namespace": {
			"top": "namespace: outer\nresources: [../app]\n", "app": "helmCharts:\n- {name: show, releaseName: rel}\n",
		},
		"two namespaces for one base": {
			"top": "resources: [../left, ../right]\n", "left": "namespace: left\nnamePrefix: l-\nresources: [../app]\n",
			"right": "namespace: right\nnamePrefix: r-\nresources: [../app]\n", "app": "helmCharts:\n- {name: show, releaseName: rel, skipHooks: true}\n",
		},
		"in a component": {
			"top": "resources: [../res]\ncomponents: [../app]\nnamespace: team\n", "res": "configMapGenerator: [{name: r, literals: [a=b]}]\n",
			"app": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nhelmCharts:\n- {name: show, releaseName: rel}\n",
		},
		"origins": {"app": "buildMetadata: [originAnnotations, transformerAnnotations, managedByLabel]\nnamePrefix: o-\nhelmCharts:\n- {name: show, releaseName: rel}\n"},
		"origins below": {
			"top": "buildMetadata: [originAnnotations]\nresources: [../app]\n", "app": "helmCharts:\n- {name: show, releaseName: rel}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := chart("app/charts/show")
			for n, data := range chart("app/below/charts/show") {
				files[n] = data
			}
			files["app/cm.yaml"] = cm("own")
			files["app/my.yaml"] = []byte("text: mine\nnested: {left: mine}\n")
			files["app/more.yaml"] = []byte("more: true\nlist: []\n")
			path := "app"
			for dir, text := range kustomizations {
				files[dir+"/kustomization.yaml"] = []byte(text)
				if dir == "top" {
					path = dir
				}
			}
			equal(t, files, path, nil)
		})
	}
}

// equal compares the objects with those that the program prints.
func equal(t *testing.T, files tree.Map, path string, f job.Fetcher) {
	t.Helper()
	// The version that helm has without being told is that of its Kubernetes libraries; a test binary does not know it.
	capabilities := job.Capabilities{KubeVersion: "v1.37.0"}
	want, _, err := manifest.Parse("", []byte(program(t, files, path)), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := render.Render(t.Context(), job.Input{Tree: files, Path: path, AppName: "web", Fetch: f, Capabilities: capabilities})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, want), contents(t, out.Objects)); diff != "" {
		t.Error(diff)
	}
	if len(out.Objects) == 0 {
		t.Error("nothing is rendered")
	}
}

func contents(t *testing.T, objects []manifest.Object) []string {
	t.Helper()
	var out []string
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

// charts answers for the chart of a repository.
type charts map[string]tree.FS

func (c charts) Fetch(_ context.Context, l job.Locator) (tree.FS, error) {
	if f, ok := c[l.String()]; ok {
		return f, nil
	}
	return nil, fmt.Errorf("%s is not there", l)
}

func TestRepositoryChartsEqualTheProgram(t *testing.T) {
	packed := pack(t, chart("show"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/index.yaml":
			_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  show:\n  - {apiVersion: v2, name: show, version: 1.2.3, urls: [show-1.2.3.tgz]}\n"))
		case "/show-1.2.3.tgz":
			_, _ = w.Write(packed)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	fetched := chart(".")
	for name, data := range fetched {
		delete(fetched, name)
		fetched[strings.TrimPrefix(name, "./")] = data
	}
	f := charts{"chart show 1.2.3 of " + server.URL: fetched, "chart show  of " + server.URL: fetched}
	for name, text := range map[string]string{
		"version":    "helmCharts:\n- {name: show, repo: %s, version: 1.2.3, releaseName: rel, namespace: team, includeCRDs: true}\n",
		"no version": "helmCharts:\n- {name: show, repo: %s/, releaseName: rel, valuesInline: {text: x}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, tree.Map{"app/kustomization.yaml": fmt.Appendf(nil, text, server.URL)}, "app", f)
		})
	}
}

// pack makes an archive of a chart.
func pack(t *testing.T, files tree.Map) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{w, z} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestChartErrors(t *testing.T) {
	broken := chart("app/charts/show")
	broken["app/charts/show/templates/bad.yaml"] = []byte("{{ fail \"no luck\" }}\n")
	for name, c := range map[string]struct {
		files tree.Map
		text  string
		want  []string
	}{
		"no repo":        {tree.Map{}, "helmCharts: [{name: gone}]\n", []string{"app/kustomization.yaml: helmCharts: chart gone: it has no repo, and there is no folder charts/gone"}},
		"not in repo":    {tree.Map{}, "helmCharts: [{name: gone, repo: 'https://charts.example', version: 1.0.0}]\n", []string{"app/kustomization.yaml: helmCharts: chart gone: chart gone 1.0.0 of https://charts.example is not there"}},
		"oci":            {tree.Map{}, "helmCharts: [{name: gone, repo: 'oci://charts.example/x/', version: 1.0.0}]\n", []string{"chart gone 1.0.0 of oci://charts.example/x is not there"}},
		"pre-releases":   {tree.Map{}, "helmCharts: [{name: gone, repo: 'https://charts.example', devel: true}]\n", []string{"chart gone >0.0.0-0 of https://charts.example is not there"}},
		"two names":      {chart("app/charts/show"), "helmCharts: [{name: show, releaseName: a, nameTemplate: b}]\n", []string{"chart show: releaseName and nameTemplate are both set"}},
		"values missing": {chart("app/charts/show"), "helmCharts: [{name: show, valuesFile: gone.yaml}]\n", []string{"app/kustomization.yaml: helmCharts: valuesFile: gone.yaml is not in the source"}},
		"values merge":   {chart("app/charts/show"), "helmCharts: [{name: show, valuesMerge: x, valuesInline: {a: b}}]\n", []string{`chart show: valuesMerge is "x", not one of merge, override and replace`}},
		"template":       {broken, "helmCharts: [{name: show, releaseName: r}]\n", []string{"app/kustomization.yaml: helmCharts: chart show: ", "no luck"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["app/kustomization.yaml"] = []byte(c.text)
			_, err := render.Render(t.Context(), job.Input{Tree: c.files, Path: "app", AppName: "web", Fetch: charts{}})
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v\nwant %s", err, want)
				}
			}
		})
	}
}
