//go:build unix

package git_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

// each calls change for every file below dir whose path contains part.
func each(t *testing.T, dir, part string, change func(name string)) {
	t.Helper()
	changed := 0
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.Contains(filepath.ToSlash(name), part) {
			changed++
			change(name)
		}
		return err
	})
	if err != nil || changed == 0 {
		t.Fatalf("%s below %s: %d files changed, %v", part, dir, changed, err)
	}
}

func write(t *testing.T, name, data string) {
	t.Helper()
	_ = os.Chmod(name, 0o600)
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// many files, so that the fetch keeps its pack.
func many() map[string]string {
	files := map[string]string{"a": "1"}
	for i := range 200 {
		files["dir/f"+strconv.Itoa(i)] = strings.Repeat(strconv.Itoa(i*7919), 20)
	}
	return files
}

func TestDamagedMirrorIsFetchedAgain(t *testing.T) {
	flip := func(t *testing.T, name string) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 100; i < len(data); i += 50 {
			data[i] ^= 0xff
		}
		write(t, name, string(data))
	}
	for name, damage := range map[string]func(t *testing.T, mirror string){
		"empty objects":   func(t *testing.T, m string) { each(t, m, "/objects/", func(n string) { write(t, n, "") }) },
		"no objects":      func(t *testing.T, m string) { each(t, m, "/objects/", func(n string) { _ = os.Remove(n) }) },
		"no folder":       func(t *testing.T, m string) { _ = os.RemoveAll(filepath.Join(m, "objects")) },
		"flipped objects": func(t *testing.T, m string) { each(t, m, "/objects/", func(n string) { flip(t, n) }) },
		"no HEAD":         func(t *testing.T, m string) { _ = os.Remove(filepath.Join(m, "HEAD")) },
		"garbled config":  func(t *testing.T, m string) { write(t, filepath.Join(m, "config"), "[[[") },
		"empty refs":      func(t *testing.T, m string) { each(t, m, "/refs/lockstep/", func(n string) { write(t, n, "") }) },
		"garbled refs": func(t *testing.T, m string) {
			each(t, m, "/refs/lockstep/", func(n string) { write(t, n, "garbage\n") })
		},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(name+" restarted="+strconv.FormatBool(restarted), func(t *testing.T) {
				t.Parallel()
				damageOnce(t, damage, restarted)
			})
		}
	}
}

// damageOnce damages a mirror of loose objects in a living store, or a packed one between two.
func damageOnce(t *testing.T, damage func(*testing.T, string), restarted bool) {
	srv := gittest.Start(t, gitserver.Options{})
	files := map[string]string{"a": "1", "dir/f7": "x"}
	if restarted {
		files = many()
	}
	repo := srv.Create("app", files)
	c := repo.Resolve("main")
	dir := t.TempDir()
	s, err := git.Open(git.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := git.Repo{URL: repo.URL()}
	ensure(t, s, r, c, "refs/heads/main")
	if !restarted {
		defer func() { _ = s.Close() }()
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, mirrorDir(t, dir))
	if restarted {
		s = open(t, git.Options{Dir: dir})
	}
	if data := read(t, s, r, c, "dir/f7"); data != files["dir/f7"] {
		t.Errorf("dir/f7 = %q", data)
	}
	next := repo.Commit(map[string]string{"a": "2"}, "2")
	ensure(t, s, r, next, "refs/heads/main")
	if data := read(t, s, r, next, "a"); data != "2" {
		t.Errorf("a = %q", data)
	}
}

// A tree that was opened before the damage reads on after it.
func TestDamageInTheMiddleOfReading(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", many())
	c := repo.Resolve("main")
	dir := t.TempDir()
	s := open(t, git.Options{Dir: dir, TreeCache: 1})
	f, err := s.Tree(t.Context(), git.Repo{URL: repo.URL()}, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFile("a"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(mirrorDir(t, dir), "objects")); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children(t, "cat-file") {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it has the old files open
	}
	if data, err := f.ReadFile("dir/f9"); err != nil || string(data) != many()["dir/f9"] {
		t.Errorf("%q, %v", data, err)
	}
}

// children are our own processes whose arguments contain the word.
func children(t *testing.T, word string) []int {
	t.Helper()
	var pids []int
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range list {
		stat, _ := os.ReadFile(name)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		f := strings.Fields(string(stat))
		if len(f) > 3 && f[3] == strconv.Itoa(os.Getpid()) && strings.Contains(string(line), word) {
			pid, _ := strconv.Atoi(f[0])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestKilledReaderIsReplaced(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", many())
	c := repo.Resolve("main")
	s := open(t, git.Options{Readers: 1})
	f, err := s.Tree(t.Context(), git.Repo{URL: repo.URL()}, c)
	if err != nil {
		t.Fatal(err)
	}
	fetches := srv.Counts().Fetches
	for i := range 20 {
		pids := children(t, "cat-file")
		if len(pids) != 1 {
			t.Fatalf("%d readers, want the one that is allowed", len(pids))
		}
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		name := "dir/f" + strconv.Itoa(i)
		if data, err := f.ReadFile(name); err != nil || string(data) != many()[name] {
			t.Fatalf("%s: %q, %v", name, data, err)
		}
	}
	if n := srv.Counts().Fetches; n != fetches {
		t.Errorf("a killed reader is no damage: %d fetches more", n-fetches)
	}
}

func TestReadersAreBoundedAndEnd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	srv := gittest.Start(t, gitserver.Options{})
	s, err := git.Open(git.Options{Dir: t.TempDir(), Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		repo := srv.Create("r"+strconv.Itoa(i), map[string]string{"a": strconv.Itoa(i)})
		if data := read(t, s, git.Repo{URL: repo.URL()}, repo.Resolve("main"), "a"); data != strconv.Itoa(i) {
			t.Errorf("a = %q", data)
		}
		if n := len(children(t, "cat-file")); n > 2 {
			t.Errorf("%d readers, want 2 at most", n)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if pids := children(t, "git"); len(pids) != 0 {
		t.Errorf("processes after Close: %v", pids)
	}
}

// Nothing is thrown away while the server is down: what can still be read is.
func TestDamageWhileTheServerIsDown(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1", "b/c": "2"})
	c := repo.Resolve("main")
	dir := t.TempDir()
	s := open(t, git.Options{Dir: dir})
	r := git.Repo{URL: repo.URL()}
	ensure(t, s, r, c, "refs/heads/main")
	blob := repo.Resolve("main:b/c")
	each(t, mirrorDir(t, dir), "/objects/"+blob[:2]+"/"+blob[2:], func(name string) { write(t, name, "") })
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	f, err := s.Tree(t.Context(), r, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFile("b/c"); !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("damaged file: %v", err)
	}
	if data, err := f.ReadFile("a"); err != nil || string(data) != "1" {
		t.Errorf("whole file: %q, %v", data, err)
	}
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	if data, err := f.ReadFile("b/c"); err != nil || string(data) != "2" {
		t.Errorf("after it is back: %q, %v", data, err)
	}
}

func TestFoldersOfKilledProcessesGo(t *testing.T) {
	base := os.TempDir()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		base = "/dev/shm"
	}
	left, err := os.MkdirTemp(base, "lockstep-git-")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(left, "id"), "key")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left, long, long); err != nil {
		t.Fatal(err)
	}
	first := open(t, git.Options{})
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left folder: %v", err)
	}
	// The folder of a living store stays, however old.
	mine, _ := filepath.Glob(filepath.Join(base, "lockstep-git-*"))
	for _, name := range mine {
		_ = os.Chtimes(name, long, long)
	}
	open(t, git.Options{})
	srv := gittest.Start(t, gitserver.Options{TLS: true})
	repo := srv.Create("app", map[string]string{"a": "1"})
	if _, err := first.Refs(t.Context(), git.Repo{URL: repo.URL(), Credentials: git.Credentials{CA: srv.CA()}}); err != nil {
		t.Errorf("the living store lost its folder: %v", err)
	}
}

func TestCancel(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	srv.Break(gitserver.Fault{Delay: time.Hour})
	s := open(t, git.Options{})
	r := git.Repo{URL: repo.URL()}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := s.Refs(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled look: %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if pids := children(t, "git"); len(pids) != 0 {
		t.Errorf("processes of the cancelled look: %v", pids)
	}
	// The next one is not the cancelled one's.
	srv.Break(gitserver.Fault{})
	if _, err := s.Refs(t.Context(), r); err != nil {
		t.Error(err)
	}
}
