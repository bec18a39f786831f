package render_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

func cm(name string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n", name)
}

// everything is a repository with a source of each kind.
func everything() tree.Map {
	return tree.Map{
		"plain/cm.yaml": cm("plain"), "plain/deep/cm.yaml": cm("deep"),
		"kustom/kustomization.yaml": []byte("resources: [cm.yaml]\nnamePrefix: k-\n"), "kustom/cm.yaml": cm("a"),
		"kustom2/Kustomization": []byte("resources: [cm.yaml]\n"), "kustom2/cm.yaml": cm("b"),
		"chart/Chart.yaml":        []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n"),
		"chart/templates/cm.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"),
		"both/Chart.yaml":         []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n"), "both/kustomization.yml": []byte("resources: [cm.yaml]\n"), "both/cm.yaml": cm("both"),
		"README.md": []byte("# all\n"),
	}
}

func TestDetect(t *testing.T) {
	for dir, want := range map[string]v1alpha1.ApplicationSourceType{
		"plain": v1alpha1.SourceTypeDirectory, "kustom": v1alpha1.SourceTypeKustomize, "kustom2": v1alpha1.SourceTypeKustomize,
		"chart": v1alpha1.SourceTypeHelm, "both": v1alpha1.SourceTypeKustomize, ".": v1alpha1.SourceTypeDirectory,
	} {
		if got, err := render.Detect(everything(), dir); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", dir, got, err, want)
		}
	}
}

func TestRenderChoosesTheTool(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		source v1alpha1.ApplicationSource
		want   string
	}{
		"directory":             {"plain", v1alpha1.ApplicationSource{}, "Directory plain"},
		"directory, recursed":   {"plain", v1alpha1.ApplicationSource{Directory: &v1alpha1.ApplicationSourceDirectory{Recurse: true}}, "Directory plain deep"},
		"kustomize":             {"kustom", v1alpha1.ApplicationSource{}, "Kustomize k-a"},
		"kustomize, options":    {"kustom", v1alpha1.ApplicationSource{Kustomize: &v1alpha1.ApplicationSourceKustomize{NamePrefix: "o-"}}, "Kustomize o-a"},
		"kustomize as files":    {"kustom2", v1alpha1.ApplicationSource{Directory: &v1alpha1.ApplicationSourceDirectory{}}, "Directory b"},
		"helm":                  {"chart", v1alpha1.ApplicationSource{}, "Helm web"},
		"helm, options":         {"chart", v1alpha1.ApplicationSource{Helm: &v1alpha1.ApplicationSourceHelm{ReleaseName: "other"}}, "Helm other"},
		"both":                  {"both", v1alpha1.ApplicationSource{}, "Kustomize both"},
		"chart of a repository": {"both", v1alpha1.ApplicationSource{Chart: "c"}, "Helm"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := render.Render(t.Context(), job.Input{Source: c.source, Tree: everything(), Path: c.path, AppName: "web"})
			if err != nil {
				t.Fatal(err)
			}
			got := string(out.Type)
			for _, o := range out.Objects {
				got += " " + o.GetName()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRenderErrors(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		source v1alpha1.ApplicationSource
		want   string
	}{
		"missing path": {
			"apps/web", v1alpha1.ApplicationSource{},
			"path apps/web is not in the source; the root has README.md, both/, chart/, kustom/, kustom2/, plain/",
		},
		"missing below": {
			"plain/none", v1alpha1.ApplicationSource{}, "path plain/none is not in the source; folder plain has cm.yaml, deep/",
		},
		"a file": {
			"plain/cm.yaml", v1alpha1.ApplicationSource{},
			"path plain/cm.yaml is a file, but a source's path is a folder: use plain, and spec.source.directory.include for one file",
		},
		"two tools": {
			"kustom", v1alpha1.ApplicationSource{Helm: &v1alpha1.ApplicationSourceHelm{}, Kustomize: &v1alpha1.ApplicationSourceKustomize{}},
			"spec.source: helm and kustomize are both set, but a source has one tool: keep one of them",
		},
		"plugin": {
			"plain", v1alpha1.ApplicationSource{Plugin: &v1alpha1.ApplicationSourcePlugin{Name: "x"}},
			"spec.source.plugin: config management plugins are off here; an administrator can enable them",
		},
		"kustomize without kustomization": {
			"plain", v1alpha1.ApplicationSource{Kustomize: &v1alpha1.ApplicationSourceKustomize{}},
			"plain: the folder has no kustomization.yaml, kustomization.yml or Kustomization",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.Render(t.Context(), job.Input{Source: c.source, Tree: everything(), Path: c.path, AppName: "web"})
			if err == nil || err.Error() != c.want {
				t.Errorf("error is %v\nwant %s", err, c.want)
			}
		})
	}
	_, err := render.Render(t.Context(), job.Input{Source: v1alpha1.ApplicationSource{Plugin: &v1alpha1.ApplicationSourcePlugin{}}, Tree: everything(), Path: "plain"})
	if !errors.Is(err, render.ErrPluginsOff) {
		t.Errorf("error is %v", err)
	}
}

func TestSizeIsBounded(t *testing.T) {
	files := tree.Map{}
	for i := range 3 {
		files[fmt.Sprintf("app/%d.yaml", i)] = append(cm(fmt.Sprint("c", i)), ("data: {x: " + strings.Repeat("x", 4<<20) + "}\n")...)
	}
	_, err := render.Render(t.Context(), job.Input{Tree: files, Path: "app"})
	if want := "app: renders to more than the 10485760 bytes that are allowed"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestOverrides(t *testing.T) {
	base := v1alpha1.ApplicationSource{RepoURL: "https://git.example/r.git", Path: "kustom", TargetRevision: "v1", Kustomize: &v1alpha1.ApplicationSourceKustomize{NamePrefix: "spec-", NameSuffix: "-s"}}
	for name, c := range map[string]struct {
		files    map[string]string
		want     string
		warnings []string
	}{
		"none":     {nil, "spec-a-s", nil},
		"all apps": {map[string]string{".argocd-source.yaml": "kustomize: {namePrefix: all-}\n"}, "all-a-s", nil},
		"one app": {
			map[string]string{".argocd-source.yaml": "kustomize: {namePrefix: all-}\n", ".argocd-source-web.yaml": "kustomize: {namePrefix: web-}\n", ".argocd-source-x.yaml": "kustomize: {namePrefix: x-}\n"},
			"web-a-s", nil,
		},
		"null removes": {map[string]string{".argocd-source.yaml": "kustomize: {nameSuffix: null}\n"}, "spec-a", nil},
		"empty":        {map[string]string{".argocd-source.yaml": "# nothing\n"}, "spec-a-s", nil},
		"place stays":  {map[string]string{".argocd-source.yaml": "path: plain\nrepoURL: https://evil.example/\ntargetRevision: x\nchart: c\n"}, "spec-a-s", nil},
		"unknown field": {
			map[string]string{".argocd-source-web.yaml": "kustomize: {namePrefix: p-}\nkustomise: {}\n"}, "p-a-s",
			[]string{`kustom/.argocd-source-web.yaml: unknown field "kustomise" is left out`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := everything()
			for n, text := range c.files {
				files["kustom/"+n] = []byte(text)
			}
			out, err := render.Render(t.Context(), job.Input{Source: base, Tree: files, Path: "kustom", AppName: "web"})
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Objects[0].GetName(); len(out.Objects) != 1 || got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if diff := cmp.Diff(c.warnings, out.Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
	for text, want := range map[string]string{
		"kustomize: {namePrefix: 3}\n": "kustom/.argocd-source.yaml: ",
		"- a\n":                        "kustom/.argocd-source.yaml: holds no mapping, but it has the shape of spec.source",
		"a: b: c\n":                    "kustom/.argocd-source.yaml: YAML: ",
		"helm: {releaseName: x}\n":     "spec.source: helm and kustomize are both set, but a source has one tool: keep one of them",
	} {
		files := everything()
		files["kustom/.argocd-source.yaml"] = []byte(text)
		_, err := render.Render(t.Context(), job.Input{Source: base, Tree: files, Path: "kustom", AppName: "web"})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error is %v, want %s", text, err, want)
		}
	}
	if base.Kustomize.NamePrefix != "spec-" {
		t.Error("the spec was changed")
	}
}
