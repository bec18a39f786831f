package rendercache_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/rendercache"
)

const canary = "canary-5f1c"

func open(t *testing.T, o rendercache.Options) *rendercache.Store {
	t.Helper()
	if o.Key == nil {
		o.Key = bytes.Repeat([]byte{1}, rendercache.KeySize)
	}
	s, err := rendercache.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *rendercache.Store, owner, name, data string) {
	t.Helper()
	if err := s.Put(owner, name, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, s *rendercache.Store, owner, name, want string) {
	t.Helper()
	got, ok := s.Get(owner, name)
	if string(got) != want || ok != (want != "") {
		t.Errorf("%s %s = %q, %v; want %q", owner, name, got, ok, want)
	}
}

// files are those of entries.
func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.rendering"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEntriesOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, rendercache.Options{Dir: dir})
	wants(t, s, "a", "1", "")
	put(t, s, "a", "1", "old")
	put(t, s, "a", "1", canary)
	put(t, s, "a", "2", "two")
	put(t, s, "b", "1", "three")
	s = open(t, rendercache.Options{Dir: dir})
	wants(t, s, "a", "1", canary)
	wants(t, s, "a", "2", "two")
	wants(t, s, "b", "2", "")
	s.Drop("a")
	wants(t, s, "a", "1", "")
	wants(t, s, "a", "2", "")
	wants(t, s, "b", "1", "three")
	if n := len(files(t, dir)); n != 1 {
		t.Errorf("%d files", n)
	}
}

func TestNothingIsReadable(t *testing.T) {
	dir := t.TempDir()
	s := open(t, rendercache.Options{Dir: dir})
	secret := noise()
	put(t, s, canary, canary, secret)
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		// Noise can not be packed, so it would stand there as it is.
		if bytes.Contains(data, []byte(secret[:32])) || bytes.Contains(data, []byte(canary)) || bytes.Contains([]byte(f.Name()), []byte(canary)) {
			t.Errorf("%s is readable", f.Name())
		}
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

// told are the lines of a log, without their time.
func told(log *bytes.Buffer) []string {
	var list []string
	for line := range strings.Lines(log.String()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " level=")
		list = append(list, line)
	}
	log.Reset()
	return list
}

// wantsTold holds the log against one sentence with each of the texts; none stands for silence.
func wantsTold(t *testing.T, log *bytes.Buffer, texts ...string) {
	t.Helper()
	list := told(log)
	if len(texts) == 0 && len(list) > 0 || len(texts) > 0 && len(list) != 1 {
		t.Fatalf("told: %q, want %q in one sentence", list, texts)
	}
	for _, text := range texts {
		if !strings.Contains(list[0], text) {
			t.Errorf("told %q, want %q", list[0], text)
		}
	}
}

// TestWhatIsForeignIsDropped: what another key or another version has written is thrown away, with one sentence that says why.
func TestWhatIsForeignIsDropped(t *testing.T) {
	dir, log := t.TempDir(), &bytes.Buffer{}
	o := rendercache.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(log, nil))}
	put(t, open(t, o), "a", "1", "x")
	wants(t, open(t, o), "a", "1", "x")
	wantsTold(t, log)
	change := map[string]func(){
		"another key": func() { o.Key = bytes.Repeat([]byte{2}, rendercache.KeySize) },
		"version 1.7": func() { o.Version = 7 },
		"version 1.0": func() { o.Version = 0 },
		"does not tell which key": func() {
			write(t, filepath.Join(dir, "mark"), nil)
		},
	}
	for _, why := range []string{"another key", "version 1.7", "version 1.0", "does not tell which key"} {
		change[why]()
		s := open(t, o)
		wantsTold(t, log, "thrown away", why)
		wants(t, s, "a", "1", "")
		if n := len(files(t, dir)); n != 0 {
			t.Errorf("%s: %d files stay", why, n)
		}
		put(t, s, "a", "1", "x")
		wants(t, open(t, o), "a", "1", "x")
		wantsTold(t, log)
	}
	if _, err := rendercache.Open(rendercache.Options{Dir: dir, Key: []byte("short")}); err == nil {
		t.Error("a short key is taken")
	}
}

// TestDamage: whatever becomes of a file, its entry is thrown away and the others stay.
func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, file, other string){
		"emptied": func(t *testing.T, file, _ string) { write(t, file, nil) },
		"cut off": func(t *testing.T, file, _ string) { data := load(t, file); write(t, file, data[:len(data)-1]) },
		"one bit": func(t *testing.T, file, _ string) {
			data := load(t, file)
			data[len(data)/2] ^= 1
			write(t, file, data)
		},
		"longer": func(t *testing.T, file, _ string) { write(t, file, append(load(t, file), 0)) },
		"gone": func(t *testing.T, file, _ string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
		"another's": func(t *testing.T, file, other string) { write(t, file, load(t, other)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := t.TempDir(), &bytes.Buffer{}
			s := open(t, rendercache.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
			put(t, s, "a", "1", "one")
			file := files(t, dir)[0]
			put(t, s, "b", "1", "two")
			other := files(t, dir)[0]
			if other == file {
				other = files(t, dir)[1]
			}
			damage(t, file, other)
			wants(t, s, "a", "1", "")
			wantsTold(t, log, "damaged", "rendered again")
			for range 2 {
				wants(t, s, "a", "1", "")
				wants(t, s, "b", "1", "two")
				s = open(t, rendercache.Options{Dir: dir})
			}
			put(t, s, "a", "1", "again")
			wants(t, s, "a", "1", "again")
		})
	}
}

func load(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFolderTakenAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	s := open(t, rendercache.Options{Dir: dir})
	put(t, s, "a", "1", "x")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	wants(t, s, "a", "1", "")
	put(t, s, "a", "1", "x")
	wants(t, s, "a", "1", "x")
	wants(t, open(t, rendercache.Options{Dir: dir}), "a", "1", "x") // the next start knows it for its own
}

// TestFullDisk: what can not be written is said once, however much it is, and nothing half stays.
func TestFullDisk(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "cache"), &bytes.Buffer{}
	s := open(t, rendercache.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	put(t, s, "a", "1", "x")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, []byte("a file where the folder was"))
	for range 3 {
		if err := s.Put("a", "2", []byte("y")); err == nil {
			t.Fatal("written to where nothing can be written")
		}
	}
	wantsTold(t, log, "can not be written")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", "2", "y")
	wantsTold(t, log, "can be written again")
	wants(t, s, "a", "2", "y")
}

func noise() string {
	data := make([]byte, 1000)
	_, _ = rand.Read(data) // never fails
	return string(data)
}

func TestBound(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	o := rendercache.Options{Dir: dir, MaxBytes: 5500, Now: func() time.Time { now = now.Add(time.Second); return now }}
	s := open(t, o)
	first := noise()
	put(t, s, "app", "0", first)
	for i := 1; i < 8; i++ {
		put(t, s, "app", fmt.Sprint(i), noise())
		wants(t, s, "app", "0", first) // used, so it stays
	}
	if _, ok := s.Get("app", "1"); ok {
		t.Error("the entry used least lately is still there")
	}
	count, size := s.Size()
	if count != 5 || size > o.MaxBytes || len(files(t, dir)) != count {
		t.Errorf("%d entries, %d bytes, %d files", count, size, len(files(t, dir)))
	}
	put(t, s, "app", "large", noise()+noise()+noise())
	wants(t, s, "app", "large", "")
	wants(t, s, "app", "0", first)
	// Left by a crash, and the bound is smaller after a restart.
	write(t, filepath.Join(dir, "1.new"), []byte("half"))
	o.MaxBytes = 2500
	s = open(t, o)
	if count, _ := s.Size(); count != 2 || len(files(t, dir)) != 2 {
		t.Errorf("%d entries after a restart", count)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAtOnce(t *testing.T) {
	s := open(t, rendercache.Options{Dir: t.TempDir(), MaxBytes: 4000})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				owner := fmt.Sprint((i + j) % 4)
				if err := s.Put(owner, "x", []byte(owner+" and more")); err != nil {
					t.Error(err)
				}
				if got, ok := s.Get(owner, "x"); ok && string(got) != owner+" and more" {
					t.Errorf("%s has %q", owner, got)
				}
				if j%10 == 0 {
					s.Drop(owner)
				}
			}
		})
	}
	wg.Wait()
}
