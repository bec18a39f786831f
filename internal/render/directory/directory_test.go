package directory_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/directory"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

func cm(name string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n", name)
}

func render(t *testing.T, f tree.FS, o *v1alpha1.ApplicationSourceDirectory) ([]string, []string) {
	t.Helper()
	out, err := directory.Render(t.Context(), job.Input{Source: v1alpha1.ApplicationSource{Directory: o}, Tree: f, Path: "app"})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, o := range out.Objects {
		got = append(got, o.GetName()+" "+o.Origin.String())
	}
	if out.Type != v1alpha1.SourceTypeDirectory {
		t.Errorf("type is %s", out.Type)
	}
	return got, out.Warnings
}

func TestFilesTaken(t *testing.T) {
	files := tree.Map{
		"app/b.yaml": cm("b"), "app/a.yml": cm("a"), "app/c.json": []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`),
		"app/d.jsonnet": []byte("{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'd'}}"), "app/e.txt": cm("e"), "app/lib.libsonnet": []byte("{}"),
		"app/README.md": []byte("# apiVersion: x"), "app/sub/f.yaml": cm("f"), "app/sub/deep/g.yaml": cm("g"), "app/.git/h.yaml": cm("h"),
		"app/.hidden.yaml": cm("hidden"), "app/.argocd-source.yaml": []byte("directory: {}"), "app/.argocd-source-web.yaml": []byte("directory: {}"),
		"app/skipped.yaml": append([]byte("# +argocd:skip-file-rendering\n"), cm("skipped")...), "other/z.yaml": cm("z"),
	}
	type options = v1alpha1.ApplicationSourceDirectory
	for name, c := range map[string]struct {
		options *options
		want    string
	}{
		"default":           {nil, "hidden a b c d"},
		"recurse":           {&options{Recurse: true}, "hidden a b c d g f"},
		"include":           {&options{Recurse: true, Include: "*.yml"}, "a"},
		"include crosses":   {&options{Recurse: true, Include: "s*.yaml"}, "g f"},
		"include folder":    {&options{Recurse: true, Include: "sub/*"}, "g f"},
		"double star":       {&options{Recurse: true, Include: "**/g.yaml"}, "g"},
		"alternatives":      {&options{Recurse: true, Include: "{a.yml,sub/f.yaml}"}, "a f"},
		"exclude":           {&options{Recurse: true, Exclude: "{sub/*,.*}"}, "a b c d"},
		"exclude wins":      {&options{Include: "*.yaml", Exclude: "b*"}, "hidden"},
		"question and set":  {&options{Include: "[a-b].y?ml"}, "b"},
		"any extension":     {&options{DisableExtensionFilter: true, Include: "e*"}, "e"},
		"every file":        {&options{DisableExtensionFilter: true, Exclude: "{README.md,lib*}"}, "hidden a b c d e"},
		"nothing is listed": {&options{Include: "nothing"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := render(t, files, c.options)
			var names []string
			for _, g := range got {
				names = append(names, strings.Fields(g)[0])
			}
			if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" || len(warnings) > 0 {
				t.Error(diff, warnings)
			}
		})
	}
	got, _ := render(t, files, &options{Recurse: true, Include: "sub/*"})
	if diff := cmp.Diff([]string{"g app/sub/deep/g.yaml:1", "f app/sub/f.yaml:1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestC010FilesWithoutObjects(t *testing.T) {
	files := tree.Map{
		"app/all.yaml":   []byte("# only a heading\n---\n---\n# nothing here\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: only}\n---\n\n---\nnull\n"),
		"app/notes.yaml": []byte("# comments\n# only\n"), "app/README.md": []byte("# read me\n"),
	}
	got, warnings := render(t, files, nil)
	if diff := cmp.Diff([]string{"only app/all.yaml:6"}, got); diff != "" || len(warnings) > 0 {
		t.Error(diff, warnings)
	}
}

func TestFilesOfOtherThings(t *testing.T) {
	files := tree.Map{
		"app/a.yaml": cm("a"), "app/values.yaml": []byte("image: {tag: 1}\n"), "app/package.json": []byte(`{"name": "x"}`),
		"app/mkdocs.yml": []byte("a: [b\n"), "app/list.yaml": []byte("- x\n"),
	}
	got, warnings := render(t, files, nil)
	if diff := cmp.Diff([]string{"a app/a.yaml:1"}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"app/list.yaml: left out, it is no Kubernetes manifest (the document is a list, not an object)",
		"app/mkdocs.yml: left out, it is no Kubernetes manifest (YAML: did not find expected ',' or ']')",
		"app/package.json: left out, it is no Kubernetes manifest (apiVersion and kind are missing, this is no Kubernetes object)",
		"app/values.yaml: left out, it is no Kubernetes manifest (apiVersion and kind are missing, this is no Kubernetes object)",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	many := strings.Repeat("---\n"+string(cm("a")), job.MaxObjects/2+1)
	large := []byte("# +argocd:skip-file-rendering " + strings.Repeat("x", job.MaxRead/5))
	for name, c := range map[string]struct {
		files   tree.Map
		options v1alpha1.ApplicationSourceDirectory
		want    string
	}{
		"C007 duplicate key": {
			tree.Map{"app/dup.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dup\n  labels: {team: red}\n  labels: {team: blue}\n")},
			v1alpha1.ApplicationSourceDirectory{}, `app/dup.yaml:6: key "labels" stands twice in one mapping, first in line 5`,
		},
		"C013 no UTF-8": {
			tree.Map{"app/w.yaml": append(cm("w1"), "data: {t: \"\xff\"}\n"...)},
			v1alpha1.ApplicationSourceDirectory{}, "app/w.yaml:4: is not UTF-8 text",
		},
		"broken": {
			tree.Map{"app/x.yaml": append(cm("a"), "data:\n a: b\n  c: d\n"...)},
			v1alpha1.ApplicationSourceDirectory{}, "app/x.yaml:6: YAML: ",
		},
		"broken json": {
			tree.Map{"app/x.json": []byte("{\"apiVersion\": \"v1\",\n\"kind\": }")},
			v1alpha1.ApplicationSourceDirectory{}, "app/x.json:2: JSON: ",
		},
		"one document is no manifest": {
			tree.Map{"app/x.yaml": append(cm("a"), "---\na: b\n"...)},
			v1alpha1.ApplicationSourceDirectory{}, "app/x.yaml:5: apiVersion and kind are missing, this is no Kubernetes object; if the file is meant for something else, exclude it with spec.source.directory.exclude",
		},
		"no kind": {
			tree.Map{"app/x.yaml": []byte("apiVersion: v1\nmetadata: {name: a}\n")},
			v1alpha1.ApplicationSourceDirectory{}, "app/x.yaml:1: a: kind is missing",
		},
		"jsonnet": {
			tree.Map{"app/x.jsonnet": []byte("{\n a: error 'no' }")},
			v1alpha1.ApplicationSourceDirectory{}, "app/x.jsonnet:2: no",
		},
		"pattern": {
			tree.Map{"app/x.yaml": cm("a")},
			v1alpha1.ApplicationSourceDirectory{Exclude: "[a"}, `spec.source.directory.exclude: pattern "[a": `,
		},
		"too many objects": {
			tree.Map{"app/x.yaml": []byte(many), "app/y.yaml": []byte(many)},
			v1alpha1.ApplicationSourceDirectory{}, "app/y.yaml: with this file there are more than the 5000 objects that are allowed",
		},
		"too much to read": {
			tree.Map{"app/a.yaml": large, "app/b.yaml": large, "app/c.yaml": large, "app/d.yaml": large, "app/e.yaml": large, "app/f.yaml": cm("f")},
			v1alpha1.ApplicationSourceDirectory{}, "app/e.yaml: with this file more than the 52428800 bytes that are allowed would be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := directory.Render(t.Context(), job.Input{Source: v1alpha1.ApplicationSource{Directory: &c.options}, Tree: c.files, Path: "app"})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error is %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("app/a.yaml", cm("a"))
	write("shared/b.txt", cm("b"))
	write("shared/c.yaml", cm("c"))
	link("app/b.yaml", "../shared/b.txt")
	link("app/gone.yaml", "nowhere")
	link("app/dir.yaml", "../shared")
	link("app/sub", "../shared")
	f, closeTree, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeTree() }()
	got, warnings := render(t, f, &v1alpha1.ApplicationSourceDirectory{Recurse: true})
	if diff := cmp.Diff([]string{"a app/a.yaml:1", "b app/b.yaml:1"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"app/dir.yaml: left out, the link leads to a folder", "app/gone.yaml: left out, the link leads nowhere"}, warnings); diff != "" {
		t.Error(diff)
	}
	link("app/out.yaml", "../../outside.yaml")
	_, err = directory.Render(t.Context(), job.Input{Tree: f, Path: "app"})
	if err == nil || !strings.HasPrefix(err.Error(), "app/out.yaml: the link can not be followed: ") || !strings.Contains(err.Error(), "leads out of the source") {
		t.Errorf("error is %v", err)
	}
}
