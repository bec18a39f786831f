package tree_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

func archive(t *testing.T, zip bool, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		data := []byte(nil)
		if h.Typeflag == tar.TypeReg {
			data = []byte("of " + h.Name)
			h.Size = int64(len(data))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !zip {
		return out.Bytes()
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped.Bytes()
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }

func link(name, target string) tar.Header {
	return tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}
}

var wide = tree.ArchiveLimits{Size: 1 << 20, Files: 100}

func TestUntar(t *testing.T) {
	headers := []tar.Header{
		{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, file("./a/x"), file(`b\y`), link("a/again", "x"),
		link("copy", "a"), link("chain", "copy/again"), link("nowhere", "c/d"), link("loop", "."),
		{Name: "hard", Linkname: "a/x", Typeflag: tar.TypeLink},
	}
	want := map[string]string{
		"a/x": "of ./a/x", "a/again": "of ./a/x", "b/y": `of b\y`, "copy/x": "of ./a/x", "copy/again": "of ./a/x",
		"chain": "of ./a/x", "hard": "of ./a/x",
	}
	for _, zip := range []bool{false, true} {
		got, err := tree.Untar(bytes.NewReader(archive(t, zip, headers...)), wide)
		if err != nil {
			t.Fatal(err)
		}
		text := map[string]string{}
		for name, data := range got {
			text[name] = string(data)
		}
		if diff := cmp.Diff(want, text); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUntarRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		headers []tar.Header
		limits  tree.ArchiveLimits
		want    error
	}{
		"climbing path":  {[]tar.Header{file("a/../../x")}, wide, tree.ErrOutside},
		"absolute path":  {[]tar.Header{file("/etc/x")}, wide, tree.ErrOutside},
		"drive":          {[]tar.Header{file("c:/x")}, wide, tree.ErrOutside},
		"climbing link":  {[]tar.Header{link("a/x", "../../y")}, wide, tree.ErrOutside},
		"absolute link":  {[]tar.Header{link("a/x", "/etc/passwd")}, wide, tree.ErrOutside},
		"too many files": {[]tar.Header{file("a"), file("b"), file("c")}, tree.ArchiveLimits{Size: 99, Files: 2}, tree.ErrTooLarge},
		"too many bytes": {[]tar.Header{file("a"), file("b")}, tree.ArchiveLimits{Size: 7, Files: 9}, tree.ErrTooLarge},
		"device":         {[]tar.Header{{Name: "d", Typeflag: tar.TypeChar}}, wide, nil},
		"file as folder": {[]tar.Header{file("a"), file("a/b")}, wide, nil},
	} {
		_, err := tree.Untar(bytes.NewReader(archive(t, true, c.headers...)), c.limits)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := tree.Untar(bytes.NewReader([]byte("no archive")), wide); err == nil {
		t.Error("text is no archive")
	}
}
