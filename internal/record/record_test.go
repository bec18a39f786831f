package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/record"
)

func open(t *testing.T, dir string) *record.Store {
	t.Helper()
	s, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func proofs() record.Proofs {
	return record.Proofs{
		{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "a"}: {Desired: "d1", Entry: "e1"},
		{Kind: "Namespace", Name: "web"}:                                 {Desired: "d2"},
	}
}

func TestProofsOutliveTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	long := "lockstep/" + strings.Repeat("long-name.", 25) + "end"
	for _, app := range []string{"lockstep/web", long} {
		if err := open(t, dir).Save(app, proofs()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(proofs(), open(t, dir).Load(app)); d != "" {
			t.Errorf("%s (-want +got)\n%s", app, d)
		}
		if err := open(t, dir).Save(app, record.Proofs{}); err != nil {
			t.Fatal(err)
		}
		if got := open(t, dir).Load(app); len(got) > 0 {
			t.Errorf("%s: %v after a save of nothing", app, got)
		}
	}
}

func TestApplicationsDoNotMix(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Save("a/b", proofs()); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"a", "b", "a-b", "a%2Fb", "../a/b", "a/b/"} {
		if got := s.Load(other); len(got) > 0 {
			t.Errorf("%s reads the proofs of a/b", other)
		}
		if err := s.Save(other, record.Proofs{{Kind: "X", Name: other}: compare.Pair{Desired: "x"}}); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
	if d := cmp.Diff(proofs(), s.Load("a/b")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestDrop(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Drop("never/was"); err != nil {
		t.Error(err)
	}
	if err := s.Save("a/b", proofs()); err != nil {
		t.Fatal(err)
	}
	if err := s.Drop("a/b"); err != nil {
		t.Error(err)
	}
	if got := s.Load("a/b"); got == nil || len(got) > 0 {
		t.Errorf("after the drop: %v, want an empty map that can be written to", got)
	}
}

// What a crash leaves behind counts as unknown and does not get into the way.
func TestBrokenFiles(t *testing.T) {
	for _, content := range []string{"", "{", `[{"k":1}]`, "\x00\x00"} {
		dir := t.TempDir()
		s := open(t, dir)
		if err := s.Save("a/b", proofs()); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			t.Fatalf("files %v, %v", files, err)
		}
		file := filepath.Join(dir, files[0].Name())
		for _, f := range []string{file, file + ".new"} {
			if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Load("a/b"); got == nil || len(got) > 0 {
			t.Errorf("%q reads as %v", content, got)
		}
		if err := s.Save("a/b", proofs()); err != nil {
			t.Errorf("after %q: %v", content, err)
		}
		if d := cmp.Diff(proofs(), s.Load("a/b")); d != "" {
			t.Errorf("after %q (-want +got)\n%s", content, d)
		}
	}
}

func TestTheFolderWasRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "proofs")
	s := open(t, dir)
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Save("a/b", proofs()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(proofs(), s.Load("a/b")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestSaveSaysWhatFailed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "proofs")
	s := open(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := s.Save("a/b", proofs())
	if err == nil || !strings.HasPrefix(err.Error(), "record a/b: ") {
		t.Errorf("got %v", err)
	}
}

func TestOpenWhereAFileIs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(file); err == nil {
		t.Error("no error")
	}
}
