package git

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// object builds a tree object from "mode name" and one byte that fills the id.
func object(parts ...string) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString(p)
		b.WriteByte(0)
		b.Write(bytes.Repeat([]byte{0xab}, 20))
	}
	return b.Bytes()
}

func TestParseTree(t *testing.T) {
	id := strings.Repeat("ab", 20)
	got, err := parseTree(object("100644 app.d", "40000 app", "120000 l", "160000 s", "100755 x"), 20)
	if err != nil {
		t.Fatal(err)
	}
	want := []tree.Entry{
		{Name: "app", Kind: tree.Dir, Hash: id, Size: -1}, {Name: "app.d", Kind: tree.File, Hash: id, Size: -1},
		{Name: "l", Kind: tree.Link, Hash: id, Size: -1}, {Name: "s", Kind: tree.Submodule, Hash: id, Size: -1},
		{Name: "x", Kind: tree.File, Hash: id, Size: -1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, data := range map[string][]byte{
		"cut id":    object("100644 a")[:20],
		"no mode":   object("a"),
		"no nul":    []byte("100644 a"),
		"slash":     object("100644 a/b"),
		"dots":      object("40000 .."),
		"dot":       object("40000 ."),
		"no name":   object("100644 "),
		"bad mode":  object("9 a"),
		"odd mode":  object("10000 a"),
		"two names": object("100644 a", "100644 a"),
	} {
		if _, err := parseTree(data, 20); !errors.Is(err, errObject) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseHeader(t *testing.T) {
	id := strings.Repeat("a", 40)
	if h, err := parseHeader(id + " blob 12\n"); err != nil || h != (header{hash: id, kind: "blob", size: 12}) {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := parseHeader(id + " missing\n"); !errors.Is(err, errMissing) {
		t.Errorf("missing: %v", err)
	}
	for _, line := range []string{"", "x\n", id + " blob\n", id + " blob -1\n", id + " blob x\n", id + " blub 1\n", "abc blob 1\n", id + " ambiguous\n"} {
		if _, err := parseHeader(line); !errors.Is(err, errObject) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestParseCommit(t *testing.T) {
	id, tr, p := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	text := "tree " + tr + "\nparent " + p + "\nauthor A <B> <a@b> 1700000000 -0330\ncommitter C <c@d> 1 +0000\n" +
		"gpgsig -----BEGIN\n author fake <x@y> 1 +0000\n tree fake\n\nsubject\nmore\n\nbody\n"
	c, err := parseCommit(id, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Commit{Hash: id, Tree: tr, Parents: []string{p}, Author: "A", Email: "B> <a@b", Subject: "subject more", Message: "subject\nmore\n\nbody"}
	want.Date = time.Unix(1700000000, 0)
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if _, offset := c.Date.Zone(); offset != -(3*3600 + 30*60) {
		t.Errorf("zone %d", offset)
	}
	if _, err := parseCommit(id, []byte("author x\n\n")); !errors.Is(err, errObject) {
		t.Errorf("no tree: %v", err)
	}
}

func TestRefNames(t *testing.T) {
	for name, want := range map[string]bool{
		"HEAD": true, "refs/heads/env/b2b": true, "refs/heads/ä": true, "main": false, "refs/heads/a:b": false, "refs/heads/a*": false,
		"refs/heads/a b": false, "refs/heads/..": false, "refs/heads/a@{1}": false, "+refs/heads/a": false, "refs/heads/": false,
		"refs/heads/a^": false, "refs/heads/a\n": false, "--upload-pack=x": false,
	} {
		if validRef(name) != want {
			t.Errorf("validRef(%q) = %v", name, !want)
		}
	}
}

func TestTreesInMemoryAreBounded(t *testing.T) {
	l := newLRU(10)
	entries := func(n int) []tree.Entry { return make([]tree.Entry, n) }
	l.put("a", entries(3))
	l.put("b", entries(3))
	l.get("a")
	l.put("c", entries(3)) // b was not asked for since
	l.put("huge", entries(11))
	for hash, want := range map[string]bool{"a": true, "b": false, "c": true, "huge": false} {
		if _, ok := l.get(hash); ok != want {
			t.Errorf("%s held: %v", hash, ok)
		}
	}
	for range 100 {
		l.put(strings.Repeat("x", l.used+1), nil)
	}
	if l.used > 10 || len(l.items) > 10 {
		t.Errorf("%d used by %d folders", l.used, len(l.items))
	}
}

func TestWhatAServerPrintsIsNoDamage(t *testing.T) {
	if s := classify("remote: fatal: bad object x\nfatal: the remote end hung up unexpectedly\n"); !s.is(ErrUnreachable) {
		t.Errorf("%+v", s)
	}
	if s := classify("fatal: bad object x\n"); !s.is(ErrCorrupt) {
		t.Errorf("%+v", s)
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add(object("100644 a", "40000 b"))
	f.Add(object("120000 ../x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data, 20)
		if err != nil {
			return
		}
		for i, e := range entries {
			if e.Name == "" || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || len(e.Hash) != 40 || e.Kind == 0 {
				t.Errorf("accepted %+v", e)
			}
			if _, err := hex.DecodeString(e.Hash); err != nil {
				t.Error(err)
			}
			if i > 0 && entries[i-1].Name >= e.Name {
				t.Errorf("%q not after %q", e.Name, entries[i-1].Name)
			}
		}
	})
}

func FuzzParseHeader(f *testing.F) {
	f.Add(strings.Repeat("a", 40) + " blob 12\n")
	f.Add("x missing\n")
	f.Fuzz(func(t *testing.T, line string) {
		if h, err := parseHeader(line); err == nil && (h.size < 0 || !fullHash(h.hash)) {
			t.Errorf("accepted %+v", h)
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree " + strings.Repeat("2", 40) + "\nauthor A <a@b> 1700000000 -0330\n\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := parseCommit("x", data); err == nil && (!fullHash(c.Tree) || strings.Contains(c.Subject, "\n")) {
			t.Errorf("accepted %+v", c)
		}
	})
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"https://h/x.git", "git@h:x", "ssh://h:22/x", "/x", "[::1]:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := parseAddress(raw)
		if err != nil {
			return
		}
		if strings.HasPrefix(a.remote, "-") || strings.HasPrefix(a.host, "-") || strings.Contains(a.remote, "::sh") {
			t.Errorf("%q gives %+v", raw, a)
		}
		if a.scheme == "https" && Normalize(a.remote) != a.key() {
			t.Errorf("%q: %q is not the key of %q", raw, a.key(), a.remote)
		}
	})
}
