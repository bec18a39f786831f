package kustomize_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// archive reads a test case: files, each after a line "-- path --".
func archive(t *testing.T, name string) tree.Map {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return parseArchive(string(data))
}

func parseArchive(text string) tree.Map {
	files := tree.Map{}
	name := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		if head, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(head, " --\n") {
			name = strings.TrimSuffix(head, " --\n")
			files[name] = []byte{}
			continue
		}
		if name != "" {
			files[name] = append(files[name], line...)
		}
	}
	return files
}

// entry is the folder that a case is built from.
func entry(files tree.Map) string {
	for _, base := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if _, ok := files[base]; ok {
			return "."
		}
	}
	return "app"
}

// onDisk writes the files of a case for the program.
func onDisk(t *testing.T, files tree.Map) string {
	t.Helper()
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
	return dir
}
