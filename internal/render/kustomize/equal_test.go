package kustomize_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// program builds the kustomize program of the library's version, once.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the kustomize program")
	}
	p, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMain(m *testing.M) {
	code := m.Run()
	if programDir != "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

var programDir string

var buildProgram = sync.OnceValues(func() (string, error) {
	var err error
	if programDir, err = os.MkdirTemp("", "kustomize"); err != nil {
		return "", err
	}
	file := filepath.Join(programDir, "kustomize")
	build := exec.Command("go", "build", "-o", file, "sigs.k8s.io/kustomize/kustomize/v5")
	build.Dir = "../../../test/tools/kustomize"
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kustomize: %w\n%s", err, out)
	}
	return file, nil
})

// run runs the program in dir and returns what it prints.
func run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(program(t), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	err := cmd.Run()
	if err != nil {
		t.Logf("kustomize %s: %s", strings.Join(args, " "), errs.String())
	}
	return out.String(), err
}

func TestBuildsEqualTheProgram(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(cases) < 25 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			files := archive(t, name)
			want, err := run(t, onDisk(t, files), "build", entry(files))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := kustomize.Build(t.Context(), job.Input{Tree: files, Path: entry(files)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinksEqualTheProgram(t *testing.T) {
	dir := onDisk(t, tree.Map{
		"real/base/kustomization.yaml": []byte("resources: [cm.yaml]\n"),
		"real/base/cm.yaml":            []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
		"app/kustomization.yaml":       []byte("resources: [base, here.yaml]\nnamePrefix: x-\n"),
		"app/there.yaml":               []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"),
	})
	for link, target := range map[string]string{"app/base": "../real/base", "app/here.yaml": "there.yaml", "linked": "app"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	f, closeTree, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeTree() }()
	for _, at := range []string{"app", "linked"} {
		want, err := run(t, dir, "build", at)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := kustomize.Build(t.Context(), job.Input{Tree: f, Path: at}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
}
