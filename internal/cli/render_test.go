package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/cli"
)

// checkout writes files below a folder that has a .git, and returns its path.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sources() map[string]string {
	return map[string]string{
		"plain/web.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		"plain/deep/more.yaml":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: more}\n",
		"kz/kustomization.yaml":  "resources: [cm.yaml]\nnamePrefix: p-\n",
		"kz/cm.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kz}\n",
		"chart/Chart.yaml":       "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
		"values/prod.yaml":       "from: prod\n",
		"chart/values.yaml":      "from: chart\n",
		"chart/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}', namespace: '{{ .Release.Namespace }}'}\ndata: {tag: '{{ .Values.tag }}', from: '{{ .Values.from }}', kube: '{{ .Capabilities.KubeVersion.Version }}', api: '{{ .Capabilities.APIVersions.Has \"a.b/v1\" }}'}\n",
		"net/main.jsonnet":       "function(name) {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: name + std.extVar('x')}}\n",
		"broken/bad.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [\n",
		"app.yaml": `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: lockstep}
spec:
  project: default
  destination: {name: in-cluster, namespace: prod}
  source:
    repoURL: https://git.example/shop
    path: chart
    helm: {valueFiles: [/values/prod.yaml], parameters: [{name: tag, value: "7"}]}
`,
	}
}

func TestRender(t *testing.T) {
	dir := checkout(t, sources())
	cases := []struct {
		name string
		args []string
		want string
	}{
		{"plain", []string{"plain"}, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n"},
		{"folders below", []string{"plain", "--directory-recurse", "-o", "name"}, "Namespace/more\nConfigMap/web\n"},
		{"kustomize", []string{"kz", "-o", "name"}, "ConfigMap/p-kz\n"},
		{"jsonnet", []string{"net", "--jsonnet-tla", "name=a", "--jsonnet-ext-var", "x=b", "-o", "name"}, "ConfigMap/ab\n"},
		{"helm", []string{"chart", "--name", "web", "-n", "prod", "--helm-set", "tag=1", "--kube-version", "1.31", "--api-versions", "a.b/v1"}, `---
apiVersion: v1
data:
  api: "true"
  from: chart
  kube: v1.31
  tag: "1"
kind: ConfigMap
metadata:
  name: web
  namespace: prod
`},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"render", filepath.Join(dir, test.args[0])}, test.args[1:]...)
			r := lockstep(args...)
			r.want(t, cli.CodeOK)
			if diff := cmp.Diff(test.want, r.stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderAnApplication(t *testing.T) {
	dir := checkout(t, sources())
	file := filepath.Join(dir, "app.yaml")
	// A value file from the root of the repository shows that the checkout was found, not only the folder.
	for _, args := range [][]string{{"render", "-f", file, dir}, {"render", "-f", file, filepath.Join(dir, "kz")}} {
		lockstep(args...).want(t, cli.CodeOK, "from: prod", `tag: "7"`, "name: shop", "namespace: prod")
	}
}

func TestRenderBadInput(t *testing.T) {
	dir := checkout(t, sources())
	other := filepath.Join(dir, "plain", "web.yaml")
	cases := []struct {
		name  string
		args  []string
		code  int
		texts []string
	}{
		{"nothing named", nil, cli.CodeUsage, []string{"one folder"}},
		{"no folder", []string{filepath.Join(dir, "nope")}, cli.CodeNotFound, []string{"nope: not found"}},
		{"a file", []string{other}, cli.CodeUsage, []string{"it is a file"}},
		{"broken YAML", []string{filepath.Join(dir, "broken")}, cli.CodeError, []string{"broken/bad.yaml:"}},
		{"no Application", []string{"-f", other}, cli.CodeUsage, []string{`kind "ConfigMap"; an Application is needed`}},
		{"bad set", []string{filepath.Join(dir, "chart"), "--helm-set", "tag"}, cli.CodeUsage, []string{"KEY=VALUE"}},
		{"missing value file", []string{filepath.Join(dir, "chart"), "--values", "none.yaml"}, cli.CodeError, []string{"none.yaml"}},
		{"no file", []string{"-f", filepath.Join(dir, "none.yaml")}, cli.CodeError, []string{"none.yaml"}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			r := lockstep(append([]string{"render"}, test.args...)...)
			r.want(t, test.code, test.texts...)
			if r.stdout != "" {
				t.Errorf("something on stdout: %s", r.stdout)
			}
			if strings.Count(strings.TrimSpace(r.stderr), "\n") > 1 {
				t.Errorf("more than a sentence: %s", r.stderr)
			}
		})
	}
}
