package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"
)

// cache keeps content on disk by its SHA-256. Files appear whole, by a rename, and are checked when they are read: what a
// crash or a bad disk left behind is thrown away and fetched again.
type cache struct {
	dir string
	max int64
	log *slog.Logger

	mu    sync.Mutex
	files map[string]cached
	size  int64
}

type cached struct {
	size int64
	used time.Time
}

const (
	blobs = "blobs"
	pages = "pages"
	temp  = "temp"
)

func openCache(dir string, most int64, log *slog.Logger) (*cache, error) {
	c := &cache{dir: dir, max: most, log: log, files: map[string]cached{}}
	if err := os.RemoveAll(filepath.Join(dir, temp)); err != nil {
		return nil, fmt.Errorf("chart cache %s: %w", dir, err)
	}
	for _, sub := range []string{blobs, pages, temp} {
		path := filepath.Join(dir, sub)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("chart cache %s: %w", dir, err)
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("chart cache %s: %w", dir, err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				c.files[filepath.Join(sub, e.Name())] = cached{info.Size(), info.ModTime()}
				c.size += info.Size()
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict("")
	return c, nil
}

// blob is the content of a hex SHA-256, where it is there and whole.
func (c *cache) blob(sum string) ([]byte, bool) {
	name := filepath.Join(blobs, sum)
	data, ok := c.read(name)
	if !ok {
		return nil, false
	}
	if hexSum(data) != sum {
		c.log.Warn("a file of the chart cache is damaged and was removed", "file", name)
		c.remove(name)
		return nil, false
	}
	return data, true
}

// putBlob keeps content and returns its hex SHA-256.
func (c *cache) putBlob(data []byte) string {
	sum := hexSum(data)
	c.write(filepath.Join(blobs, sum), data)
	return sum
}

// page is what is known of a URL: the content last seen and how to ask whether it has changed.
type page struct {
	Sum          string `json:"sum"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
}

// page is what was kept for a URL, with its content; false when there is nothing usable.
func (c *cache) page(url string) (page, []byte, bool) {
	data, ok := c.read(pageName(url))
	if !ok {
		return page{}, nil, false
	}
	var p page
	if err := json.Unmarshal(data, &p); err != nil {
		c.remove(pageName(url))
		return page{}, nil, false
	}
	content, ok := c.blob(p.Sum)
	return p, content, ok
}

// putPage keeps the content of a URL, where the server gave something to ask about it with.
func (c *cache) putPage(url string, p page, content []byte) {
	if p.ETag == "" && p.LastModified == "" {
		return
	}
	p.Sum = c.putBlob(content)
	data, err := json.Marshal(p)
	if err != nil {
		return // three strings always marshal
	}
	c.write(pageName(url), data)
}

// pageName hides the URL, which may hold a token, and is a file name whatever is in it.
func pageName(url string) string { return filepath.Join(pages, hexSum([]byte(url))) }

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (c *cache) read(name string) ([]byte, bool) {
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("a file of the chart cache can't be read", "file", name, "error", err)
		}
		return nil, false
	}
	now := time.Now()
	// The time on disk outlives the process; without it the file only goes earlier.
	_ = os.Chtimes(filepath.Join(c.dir, name), now, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.files[name]; ok {
		f.used = now
		c.files[name] = f
	}
	return data, true
}

// write puts a file in its place whole. The cache is a help: what can't be written is logged and not an error.
func (c *cache) write(name string, data []byte) {
	if err := c.replace(name, data); err != nil {
		c.log.Warn("a file of the chart cache can't be written", "file", name, "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += int64(len(data)) - c.files[name].size
	c.files[name] = cached{int64(len(data)), time.Now()}
	c.evict(name)
}

func (c *cache) replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Join(c.dir, temp), "*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(c.dir, name))
}

func (c *cache) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(name)
}

func (c *cache) drop(name string) {
	if err := os.Remove(filepath.Join(c.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("a file of the chart cache can't be removed", "file", name, "error", err)
		return
	}
	c.size -= c.files[name].size
	delete(c.files, name)
}

// evict removes what was not used for longest until the cache fits; keep stays.
func (c *cache) evict(keep string) {
	if c.size <= c.max {
		return
	}
	names := make([]string, 0, len(c.files))
	for name := range c.files {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return c.files[names[i]].used.Before(c.files[names[j]].used) })
	for _, name := range names {
		if c.size <= c.max {
			return
		}
		if name != keep {
			c.drop(name)
		}
	}
}
