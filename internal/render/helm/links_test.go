package helm_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/helm"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// folder is a checkout with files and links.
func folder(t *testing.T, files, links map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func linked(t *testing.T, links map[string]string) job.Input {
	t.Helper()
	dir := folder(t, map[string]string{
		"app/Chart.yaml":        chartYAML,
		"app/.helmignore":       "broken\n",
		"app/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {v: {{ .Values.v | quote }}}\n",
		"shared/cm.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n",
		"shared/values.yaml":    "v: linked",
	}, links)
	return job.Input{Tree: open(t, dir), Path: "app", AppName: "x", Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.ApplicationSourceHelm{}}}
}

// TestLinks has links out of the chart, which are followed, and what may not be followed.
func TestLinks(t *testing.T) {
	in := linked(t, map[string]string{"app/templates/more": "../../shared", "app/more.yaml": "../shared/values.yaml", "app/broken": "nowhere"})
	_, err := helm.Render(context.Background(), in)
	if err == nil || !strings.HasPrefix(err.Error(), "app/templates/more/values.yaml: ") {
		t.Errorf("a file without kind in templates: %v", err)
	}
	in = linked(t, map[string]string{"app/templates/more.yaml": "../../shared/cm.yaml", "app/more.yaml": "../shared/values.yaml", "app/broken": "nowhere"})
	in.Source.Helm.ValueFiles = []string{"mor?.yaml"}
	out := render(t, in)
	if got := strings.Join(names(out), " "); got != "ConfigMap/own ConfigMap/shared" {
		t.Errorf("objects: %s", got)
	}
	if got := out.Objects[0].Object["data"].(map[string]any)["v"]; got != "linked" {
		t.Errorf("value %v", got)
	}
	for target, want := range map[string]string{
		"../..":      "app/dir: the link can't be followed",
		"/etc":       "app/dir: the link can't be followed",
		"../nowhere": "app/dir: the link can't be followed",
		".":          "more than 40 links",
	} {
		_, err := helm.Render(context.Background(), linked(t, map[string]string{"app/dir": target}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("link to %s: %v, want %s", target, err, want)
		}
	}
	two := linked(t, map[string]string{"shared/a": ".", "shared/b": ".", "app/dir": "../shared"})
	if _, err := helm.Render(context.Background(), two); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("two links to their own folder: %v", err)
	}
}
