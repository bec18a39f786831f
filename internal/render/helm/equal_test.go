package helm_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/render/helm"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// helmProgram builds the helm program of the version whose library we use.
func helmProgram(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the helm program")
	}
	program := filepath.Join(t.TempDir(), "helm")
	build := exec.Command("go", "build", "-o", program, "helm.sh/helm/v4/cmd/helm")
	build.Dir = "../../../test/tools/helm"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, out)
	}
	return program
}

// run runs helm with a home of its own.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var out, faults bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &faults
	if err := cmd.Run(); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, faults.String())
	}
	return out.String()
}

func open(t *testing.T, dir string) tree.FS {
	t.Helper()
	f, closeTree, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeTree() })
	return f
}

func text(t *testing.T, file string) helm.Values {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return helm.Values{File: file, Text: data}
}

// TestEqualToHelm renders the same charts with the helm program and with us: the texts must be the same.
func TestEqualToHelm(t *testing.T) {
	program := helmProgram(t)
	charts := open(t, "testdata/charts")
	const full, family = "testdata/charts/full", "testdata/charts/family"
	cases := map[string]struct {
		release helm.Release
		args    []string
	}{
		"plain":        {helm.Release{Path: "full", Name: "x"}, nil},
		"no name":      {helm.Release{Path: "full"}, nil},
		"namespace":    {helm.Release{Path: "full", Name: "x", Namespace: "shop"}, []string{"--namespace", "shop"}},
		"CRDs":         {helm.Release{Path: "full", Name: "x", IncludeCRDs: true}, []string{"--include-crds"}},
		"no tests":     {helm.Release{Path: "full", Name: "x", SkipTests: true}, []string{"--skip-tests"}},
		"no hooks":     {helm.Release{Path: "full", Name: "x", SkipHooks: true}, []string{"--no-hooks"}},
		"APIs":         {helm.Release{Path: "full", Name: "x", APIVersions: []string{"example.dev/v1/Thing", "b/v1"}}, []string{"--api-versions", "example.dev/v1/Thing,b/v1"}},
		"vendor's":     {helm.Release{Path: "full", Name: "x", KubeVersion: "v1.33.4-gke.1245000"}, []string{"--kube-version", "v1.33.4-gke.1245000"}},
		"name":         {helm.Release{Path: "full", NameTemplate: `{{ printf "a-%s" "b" | upper | lower }}`}, []string{"--name-template", `{{ printf "a-%s" "b" | upper | lower }}`}},
		"family":       {helm.Release{Path: "family", Name: "x", IncludeCRDs: true}, []string{"--include-crds"}},
		"sub-chart":    {helm.Release{Path: "family/charts/web", Name: "x"}, nil},
		"skip schemas": {helm.Release{Path: "full", Name: "x", SkipSchema: true, Parameters: []helm.Parameter{{Name: "replicas", Value: "many"}}}, []string{"--skip-schema-validation", "--set", "replicas=many"}},
		"values": {helm.Release{Path: "full", Name: "x", Values: []helm.Values{text(t, full+"/values-prod.yaml"), {Text: []byte(`{"who": "you", "big": 1e3, "image": {"tag": null}}`)}}},
			[]string{"-f", full + "/values-prod.yaml", "--set-json", `{"who": "you", "big": 1e3, "image": {"tag": null}}`}},
		"nulls": {helm.Release{Path: "family", Name: "x", Values: []helm.Values{text(t, family+"/values-less.yaml")}}, []string{"-f", family + "/values-less.yaml"}},
		"set": {helm.Release{Path: "full", Name: "x", Parameters: []helm.Parameter{
			{Name: "set.bool", Value: "true"}, {Name: "set.text", Value: "true", String: true}, {Name: "set.int", Value: "12"},
			{Name: "set.list", Value: "{a,b,3}"}, {Name: "set.items[1].name", Value: "second"}, {Name: `set.dotted\.key`, Value: "v"},
			{Name: "set.commas", Value: "a,b"}, {Name: "set.null", Value: "null"}, {Name: "set.late", Value: "x", String: true},
			{Name: "set.late", Value: "y"}, {Name: "set.float", Value: "1.50"}, {Name: "set.zero", Value: "007"},
			{Name: "set.file", Value: "line one\nline two\n", Literal: true}, {Name: "list", Value: "{}"},
		}}, []string{
			"--set", "set.bool=true", "--set-string", "set.text=true", "--set", "set.int=12", "--set", "set.list={a,b,3}",
			"--set", "set.items[1].name=second", "--set", `set.dotted\.key=v`, "--set", `set.commas=a\,b`, "--set", "set.null=null",
			"--set-string", "set.late=x", "--set", "set.late=y", "--set", "set.float=1.50", "--set", "set.zero=007",
			"--set-file", "set.file=" + full + "/files/a.conf", "--set", "list={}",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.release.Chart = charts
			args := []string{"template"}
			if c.release.Name != "" {
				args = append(args, c.release.Name)
			}
			if c.release.KubeVersion == "" {
				// The library has another default version in test programs.
				c.release.KubeVersion = "1.37.0"
				args = append(args, "--kube-version", "1.37.0")
			}
			args = append(append(args, filepath.Join("testdata/charts", c.release.Path)), c.args...)
			got, err := helm.Template(context.Background(), c.release)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(run(t, program, args...), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("neighbours", func(t *testing.T) { equalNeighbours(t, program, charts) })
}

// equalNeighbours compares with what helm renders after helm dependency build; we need no such step.
func equalNeighbours(t *testing.T, program string, charts tree.FS) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/charts/mono")); err != nil {
		t.Fatal(err)
	}
	run(t, program, "dependency", "update", filepath.Join(dir, "app"))
	got, err := helm.Template(context.Background(), helm.Release{Chart: charts, Path: "mono/app", Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run(t, program, "template", "x", filepath.Join(dir, "app")), string(got)); diff != "" {
		t.Error(diff)
	}
}
