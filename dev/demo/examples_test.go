package main

import (
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// examples are the files that the demo serves.
func examples(t *testing.T) map[string]string {
	t.Helper()
	files, err := gitserver.ReadDir("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// changed applies a change as a commit does.
func changed(files, change map[string]string) map[string]string {
	result := maps.Clone(files)
	maps.Copy(result, change)
	maps.DeleteFunc(result, func(_, data string) bool { return data == deleted })
	return result
}

// rendered renders one of the applications out of files and counts what comes of it by kind.
func rendered(t *testing.T, files map[string]string, app string) (map[string]int, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := application(t, files, app)
	f, done, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }()
	out, err := render.Render(context.Background(), job.Input{
		Source: *a.Spec.Source, Tree: f, Path: a.Spec.Source.Path, AppName: a.Name, Namespace: a.Spec.Destination.Namespace,
	})
	kinds := map[string]int{}
	var images strings.Builder
	for _, o := range out.Objects {
		kinds[o.GetKind()]++
		if text, err := yaml.Marshal(o.Object); err == nil {
			images.Write(text)
		}
	}
	return kinds, images.String(), err
}

func application(t *testing.T, files map[string]string, name string) v1alpha1.Application {
	t.Helper()
	var a v1alpha1.Application
	if err := yaml.UnmarshalStrict([]byte(files[path.Join(appsDir, name+".yaml")]), &a); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return a
}

func TestExamplesRender(t *testing.T) {
	files := examples(t)
	want := map[string]map[string]int{
		"guestbook-plain":   {"ConfigMap": 1, "Deployment": 2, "Service": 2},
		"guestbook-stage":   {"ConfigMap": 1, "Deployment": 2, "Service": 2},
		"guestbook-prod":    {"ConfigMap": 1, "Deployment": 2, "Service": 2, "Ingress": 1, "PodDisruptionBudget": 1},
		"guestbook-helm":    {"ConfigMap": 1, "Deployment": 2, "Service": 2, "ServiceAccount": 1},
		"guestbook-jsonnet": {"Deployment": 2, "Service": 2},
	}
	for name := range files {
		if app := strings.TrimSuffix(path.Base(name), ".yaml"); path.Dir(name) == appsDir && want[app] == nil {
			t.Errorf("%s: is not in this test", name)
		}
	}
	for app, kinds := range want {
		got, _, err := rendered(t, files, app)
		if err != nil {
			t.Errorf("%s: %v", app, err)
		}
		if diff := cmp.Diff(kinds, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", app, diff)
		}
	}
}

// What the demo does to the examples must have the effect that it is to show.
func TestChangesHaveTheirEffect(t *testing.T) {
	files := examples(t)
	_, text, err := rendered(t, changed(files, newImageFiles(files)), stageApp)
	if err != nil || strings.Count(text, ":"+newTag) != 1 {
		t.Errorf("new image: %v, %d times in the result", err, strings.Count(text, ":"+newTag))
	}
	_, _, err = rendered(t, changed(files, brokenFiles(files)), plainApp)
	if err == nil || !strings.Contains(err.Error(), "web.yaml:") {
		t.Errorf("broken manifest: %v, want file and line", err)
	}
	kinds, _, err := rendered(t, changed(files, emptiedFiles(files)), plainApp)
	if err != nil || len(kinds) != 0 {
		t.Errorf("emptied folder: %v, %v, want nothing", kinds, err)
	}
}
