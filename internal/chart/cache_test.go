package chart

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func testCache(t *testing.T, dir string, most int64) *cache {
	t.Helper()
	c, err := openCache(dir, most, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCacheForgetsTheOldest(t *testing.T) {
	dir := t.TempDir()
	c := testCache(t, dir, 250)
	blob := func(b byte) []byte { return bytes.Repeat([]byte{b}, 100) }
	a, b := c.putBlob(blob('a')), c.putBlob(blob('b'))
	if _, ok := c.blob(a); !ok {
		t.Fatal("a is gone")
	}
	d := c.putBlob(blob('d'))
	for sum, want := range map[string]bool{a: true, b: false, d: true} {
		if _, ok := c.blob(sum); ok != want {
			t.Errorf("%s: %v, want %v", sum[:4], ok, want)
		}
	}
	// What is too large alone is kept for its own use and goes with the next.
	if _, ok := c.blob(c.putBlob(bytes.Repeat([]byte("x"), 400))); !ok {
		t.Error("the last blob must stay")
	}
	if again := testCache(t, dir, 250); again.size > 250 {
		t.Errorf("opened with %d bytes", again.size)
	}
}

func TestCacheAfterCrash(t *testing.T) {
	dir := t.TempDir()
	c := testCache(t, dir, 1<<20)
	c.putPage("https://h/index.yaml", page{ETag: `"1"`}, []byte("content"))
	if err := os.WriteFile(filepath.Join(dir, temp, "half"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := testCache(t, dir, 1<<20)
	if left, err := os.ReadDir(filepath.Join(dir, temp)); err != nil || len(left) != 0 {
		t.Errorf("%d unfinished files are left, %v", len(left), err)
	}
	if p, data, ok := again.page("https://h/index.yaml"); !ok || p.ETag != `"1"` || string(data) != "content" {
		t.Errorf("%v %q %v", p, data, ok)
	}
	// The page without its content is no page.
	if err := os.RemoveAll(filepath.Join(dir, blobs, hexSum([]byte("content")))); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := again.page("https://h/index.yaml"); ok {
		t.Error("a page without content")
	}
	again.putPage("https://h/x", page{}, []byte("no way to ask again"))
	if _, _, ok := again.page("https://h/x"); ok {
		t.Error("a page that can't be asked about is kept")
	}
}
