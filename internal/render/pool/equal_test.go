package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/pool"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// world is a repository with sources of every kind, good and bad.
func world() tree.Map {
	files := tree.Map{}
	for name, text := range map[string]string{
		"plain/a.yaml": cm("plain"), "plain/b.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`,
		"net/a.jsonnet": `local l = import 'lib.libsonnet'; {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: l.name}, data: {x: importstr 'text.txt'}}`,
		"net/b.yaml":    cm("beside"), "net/lib.libsonnet": `{name: 'n' + std.extVar('x')}`, "net/text.txt": "text",
		"badnet/a.jsonnet": "{\n  x: error 'no',\n}",

		"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "chart/values.yaml": "a: 1\nb: 1.0\nc: null\nd: 1e3\nn: {x: y}\n",
		"chart/.helmignore": "ignored*\n", "chart/ignored.txt": "x", "chart/files/f.txt": "content", "chart/README.md": "readme",
		"chart/templates/_h.tpl":      `{{ define "h" }}h-{{ .Release.Name }}{{ end }}`,
		"chart/templates/cm.yaml":     cm(`{{ include "h" . }}`) + "data: {{ .Values | toJson }}\nf: {{ .Files.Get \"files/f.txt\" }}\nk: {{ .Capabilities.KubeVersion }}\nx: {{ .Capabilities.APIVersions.Has \"a.b/v1\" }}\n",
		"chart/templates/random.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: {{ randAlphaNum 12 | quote }}, list: [1, 2.5, true, null]}\n",
		"chart/templates/zone.yaml":   cm("zone") + "data: {t: {{ dateInZone \"15:04 MST\" (toDate \"2006-01-02\" \"2024-07-01\") \"Europe/Berlin\" }}}\n",
		"values/one.yaml":             "a: 2\n", "values/two.yaml": "n: {x: z}\n", "values/three.yaml": "{broken",
		"badchart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "badchart/templates/x.yaml": "a: b\n{{ fail \"it is not so\" }}\n",
		"odd/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "odd/templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: [1]\n",
		"needs/Chart.yaml": "apiVersion: v2\nname: n\nversion: 1.0.0\ndependencies: [{name: dep, version: 1.x, repository: 'https://charts.example.com'}]\n",

		"kz/base/kustomization.yaml": "resources: [cm.yaml, deep]\n", "kz/base/cm.yaml": cm("base"), "kz/base/deep/kustomization.yaml": "resources: [x.yaml]\n", "kz/base/deep/x.yaml": cm("deep"),
		"kz/part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {part: 'yes'}}]\n",
		"kz/over/kustomization.yaml": "resources: [../base]\ncomponents: [../part]\nnamePrefix: o-\nconfigMapGenerator: [{name: gen, files: [f.txt], literals: [a=1]}]\npatches: [{path: patch.yaml}]\n",
		"kz/over/f.txt":              "text", "kz/over/unused.txt": "never read", "kz/over/patch.yaml": cm("base") + "data: {patched: 'yes'}\n",
		"kz/remote/kustomization.yaml": "resources: ['https://git.example.com/bases//web?ref=v1']\n",
		"kz/charts/kustomization.yaml": "helmCharts: [{name: c, releaseName: r}]\nhelmGlobals: {chartHome: ../..}\n",
		"kz/bad/kustomization.yaml":    "resources: [none.yaml]\n",
		"kz/exec/kustomization.yaml":   "generators: [gen.yaml]\n",
		"kz/exec/gen.yaml":             "apiVersion: x/v1\nkind: Gen\nmetadata: {name: x, annotations: {config.kubernetes.io/function: \"exec: {path: /bin/true}\"}}\n",

		"over/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "over/templates/cm.yaml": cm("{{ .Release.Name }}"), "over/.argocd-source.yaml": "helm: {releaseName: other}\nnonsense: 1\n",
	} {
		files[name] = []byte(text)
	}
	return files
}

func cm(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '" + name + "'}\n"
}

var errNotAllowed = errors.New("is not allowed in project web")

// elsewhere fetches what the sources name.
type elsewhere struct{}

func (elsewhere) Fetch(_ context.Context, l job.Locator) (tree.FS, error) {
	switch l.Kind {
	case job.LocateChart:
		return tree.Map{"Chart.yaml": []byte("apiVersion: v2\nname: dep\nversion: 1.2.0\n"), "templates/x.yaml": []byte(cm("{{ .Chart.Version }}"))}, nil
	case job.LocateGit:
		return tree.Map{"web/kustomization.yaml": []byte("resources: [x.yaml]\n"), "web/x.yaml": []byte(cm("from-" + l.Revision))}, nil
	}
	return nil, fmt.Errorf("%s: %w", l, errNotAllowed)
}

func inputs() map[string]job.Input {
	helm := func(h v1alpha1.ApplicationSourceHelm) v1alpha1.ApplicationSource {
		return v1alpha1.ApplicationSource{Helm: &h}
	}
	all := map[string]job.Input{
		"plain":              {Path: "plain"},
		"jsonnet":            {Path: "net", Source: v1alpha1.ApplicationSource{Directory: &v1alpha1.ApplicationSourceDirectory{Jsonnet: v1alpha1.ApplicationSourceJsonnet{ExtVars: []v1alpha1.JsonnetVar{{Name: "x", Value: "y"}}}}}},
		"jsonnet, broken":    {Path: "badnet"},
		"chart":              {Path: "chart"},
		"chart, values":      {Path: "chart", Source: helm(v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"../values/o*.yaml", "$other/v.yaml"}, Values: "z: $ARGOCD_APP_NAME", Parameters: []v1alpha1.HelmParameter{{Name: "q", Value: "$ARGOCD_APP_NAME"}}, FileParameters: []v1alpha1.HelmFileParameter{{Name: "f", Path: "files/f.txt"}}})},
		"chart, no values":   {Path: "chart", Source: helm(v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"none.yaml"}})},
		"chart, bad values":  {Path: "chart", Source: helm(v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"/values/three.yaml"}})},
		"chart, far values":  {Path: "chart", Source: helm(v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"https://example.com/values.yaml"}})},
		"chart, outside":     {Path: "chart", Source: helm(v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"../../../../etc/passwd"}})},
		"chart, broken":      {Path: "badchart"},
		"chart, odd object":  {Path: "odd"},
		"chart, dependency":  {Path: "needs"},
		"kustomize":          {Path: "kz/over"},
		"kustomize, options": {Path: "kz/over", Source: v1alpha1.ApplicationSource{Kustomize: &v1alpha1.ApplicationSourceKustomize{NameSuffix: "-x", Version: "v1"}}},
		"kustomize, remote":  {Path: "kz/remote"},
		"kustomize, chart":   {Path: "kz/charts"},
		"kustomize, broken":  {Path: "kz/bad"},
		"kustomize, program": {Path: "kz/exec"},
		"overrides":          {Path: "over"},
		"no path":            {Path: "none"},
		"plugin":             {Path: "plain", Source: v1alpha1.ApplicationSource{Plugin: &v1alpha1.ApplicationSourcePlugin{}}},
	}
	for name, in := range all {
		in.AppName, in.Namespace, in.Project, in.Fetch = "web", "shop", "default", elsewhere{}
		in.Env = map[string]string{"ARGOCD_APP_NAME": "web"}
		in.Capabilities = job.Capabilities{KubeVersion: "v1.37.0", APIVersions: []string{"a.b/v1"}}
		in.Refs = map[string]tree.FS{"other": tree.Map{"v.yaml": []byte("ref: 'yes'\n")}}
		all[name] = in
	}
	alone := all["needs"]
	alone.Path, alone.Fetch, alone.AppName = "needs", nil, "web"
	all["chart, nothing fetched"] = alone
	return all
}

// What a worker renders is what the libraries render here: objects, warnings, errors, and what was read for it.
func TestWorkersRenderTheSame(t *testing.T) {
	p := newPool(t, pool.Options{})
	for name, in := range inputs() {
		t.Run(name, func(t *testing.T) { same(t, p, in, world()) })
	}
}

func same(t *testing.T, p *pool.Pool, in job.Input, files tree.FS) {
	t.Helper()
	here, there := in, in
	var reads, sent *tree.ReadSet
	here.Tree, reads = tree.Record(files)
	there.Tree, sent = tree.Record(files)
	want, wantErr := render.Render(t.Context(), here)
	got, err := p.Render(t.Context(), there)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("error is %v\nwant %v", err, wantErr)
	}
	sameError(t, err, wantErr)
	stable(&want)
	stable(&got)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(job.Asked{})); diff != "" {
		t.Error(diff)
	}
	if m, ok := files.(tree.Map); ok && err == nil {
		sameReads(t, reads.Reads(), sent.Reads(), m)
	}
}

// stable takes out what templates made up.
func stable(out *job.Output) {
	for i, paths := range out.Generated {
		for _, p := range paths {
			p.Set(out.Objects[i].Object, "made up")
		}
	}
}

func sameError(t *testing.T, got, want error) {
	t.Helper()
	for _, kind := range []error{errNotAllowed, fs.ErrNotExist, tree.ErrOutside, job.ErrNoFetcher, render.ErrPluginsOff} {
		if errors.Is(got, kind) != errors.Is(want, kind) {
			t.Errorf("errors.Is(err, %v) is %v", kind, errors.Is(got, kind))
		}
	}
	var a, b *job.Error
	if errors.As(got, &a) != errors.As(want, &b) || a != nil && *a != *b {
		t.Errorf("place is %+v\nwant %+v", a, b)
	}
}

// sameReads changes everything that there is, and adds to every folder: both must hold for the same changes. The content of the
// same files was read.
func sameReads(t *testing.T, want, got tree.Reads, files tree.Map) {
	t.Helper()
	changes := []string{"new", "apps"}
	for name := range files {
		changes = append(changes, name, path.Join(path.Dir(name), "new.yaml"), path.Join(path.Dir(path.Dir(name)), "new.txt"),
			path.Join(path.Dir(name), "kustomization.yml"), path.Join(path.Dir(name), "Chart.yaml"))
	}
	for _, name := range changes {
		changed := tree.Overlay(files, tree.Map{name: []byte("changed")})
		if want.Hold(changed) != got.Hold(changed) {
			t.Errorf("%s changed: holds is %v", name, got.Hold(changed))
		}
	}
	content := func(list tree.Reads) tree.Reads {
		return slices.DeleteFunc(slices.Clone(list), func(r tree.Read) bool { return r.Op != tree.ReadContent || files[r.Path] == nil })
	}
	if diff := cmp.Diff(content(want), content(got)); diff != "" {
		t.Error(diff)
	}
}

// Links of a checkout are followed as far as they stay inside.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for name, data := range world() {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"kz/over/link.yaml": "../base/cm.yaml", "linked": "kz/over", "chart/files/out": "/etc/passwd", "kz/bad/none.yaml": "../../../../etc/passwd",
		"values/x.yaml": "one.yaml", "values/loop.yaml": "loop.yaml",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	files, done, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = done() })
	p := newPool(t, pool.Options{})
	all := inputs()
	linked := all["kustomize"]
	linked.Path = "linked"
	values := all["chart, values"]
	values.Path = "over"
	values.Source = v1alpha1.ApplicationSource{Helm: &v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"../values/x.yaml", "../values/[a-o]*.yaml"}}}
	loop := values
	loop.Source = v1alpha1.ApplicationSource{Helm: &v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"../values/loop.yaml"}}}
	for name, in := range map[string]job.Input{"folder": linked, "outside": all["chart"], "outside, kustomize": all["kustomize, broken"], "file": values, "loop": loop} {
		t.Run(name, func(t *testing.T) { same(t, p, in, files) })
	}
}

// A field that is added to the values of a rendering must travel, unless it is for the parent alone as Urgent is; this test
// fails until somebody has seen to it.
func TestEveryFieldTravels(t *testing.T) {
	names := func(v any) string {
		var list []string
		for f := range reflect.TypeOf(v).Fields() {
			list = append(list, f.Name)
		}
		return strings.Join(list, " ")
	}
	if got, want := names(job.Input{}), "Source Tree Path Refs Project AppName Namespace Capabilities Env Fetch Urgent Asked"; got != want {
		t.Errorf("job.Input has %s; see to wire.Task, and to this test", got)
	}
	if got, want := names(job.Output{}), "Objects Warnings Random Generated Type Asked"; got != want {
		t.Errorf("job.Output has %s; see to wire.Result, and to this test", got)
	}
}
