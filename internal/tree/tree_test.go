package tree_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

func names(t *testing.T, f tree.FS, dir string) []string {
	t.Helper()
	entries, err := f.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name+" "+e.Kind.String())
	}
	return out
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"": ".", "/": ".", "./a//b/": "a/b", "/a": "a", "a/../b": "b", "..": "!", "a/../../b": "!", "/../x": "!",
	} {
		got, err := tree.Clean(in)
		if errors.Is(err, tree.ErrOutside) {
			got = "!"
		}
		if got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMapOverlayAndSub(t *testing.T) {
	base := tree.Map{"a/x.yaml": []byte("1"), "a/y.yaml": []byte("2"), "b/z": []byte("3")}
	over := tree.Overlay(base, tree.Map{"a/x.yaml": []byte("new"), "c/d/e": []byte("4")})
	if diff := cmp.Diff([]string{"a folder", "b folder", "c folder"}, names(t, over, ".")); diff != "" {
		t.Error(diff)
	}
	below, err := tree.Sub(over, "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x.yaml file", "y.yaml file"}, names(t, below, ".")); diff != "" {
		t.Error(diff)
	}
	if data, _ := below.ReadFile("x.yaml"); string(data) != "new" {
		t.Errorf("x.yaml = %q", data)
	}
	if _, err := over.ReadFile("c/no"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := tree.Sub(over, "b/z"); err == nil {
		t.Error("Sub of a file must fail")
	}
}

func TestLinksStayInside(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(name, data string) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("app/base/cm.yaml", "x")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"app/here": "base/cm.yaml", "up": "app/base", "app/loop": "loop", "app/out": secret, "app/climb": "../../secret",
		"app/chain": "../up/cm.yaml",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	f, closeTree, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeTree() }()
	view := tree.Follow(f)
	for _, name := range []string{"app/here", "up/cm.yaml", "app/chain"} {
		if data, err := view.ReadFile(name); err != nil || string(data) != "x" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	for _, name := range []string{"app/out", "app/climb"} {
		if _, err := view.ReadFile(name); !errors.Is(err, tree.ErrOutside) {
			t.Errorf("%s: want ErrOutside, got %v", name, err)
		}
	}
	if _, err := view.ReadFile("app/loop"); err == nil {
		t.Error("a loop of links must be an error")
	}
}
