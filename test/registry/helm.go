package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// Helm is a Helm repository over http. Its index is made anew from what was added.
type Helm struct {
	server
	mu     sync.Mutex
	charts []added
	files  map[string][]byte
	links  map[string]string
}

type added struct {
	Chart
	url, digest string
}

// StartHelm starts a repository without charts.
func StartHelm(o Options) *Helm {
	h := &Helm{files: map[string][]byte{}, links: map[string]string{}}
	h.start(o, http.HandlerFunc(h.serve), `Basic realm="charts"`)
	return h
}

// URL of the repository.
func (h *Helm) URL() string { return h.http.URL }

// Add packs a chart and offers it at charts/NAME-VERSION.tgz.
func (h *Helm) Add(files map[string]string) (Chart, error) {
	c, err := Pack(files)
	if err != nil {
		return c, err
	}
	name := fmt.Sprintf("charts/%s-%s.tgz", c.Name, c.Version)
	sum := sha256.Sum256(c.Archive)
	h.Put(name, c.Archive)
	h.AddAt(c, name, hex.EncodeToString(sum[:]))
	return c, nil
}

// AddAt offers a chart in the index with this URL, absolute or relative, and this digest, which may be empty or wrong.
func (h *Helm) AddAt(c Chart, url, digest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.charts = append(h.charts, added{c, url, digest})
}

// Put serves data at a path.
func (h *Helm) Put(path string, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files["/"+path] = data
}

// Redirect answers for a path with a redirect to a URL.
func (h *Helm) Redirect(path, url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.links["/"+path] = url
}

func (h *Helm) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if to, ok := h.links[r.URL.Path]; ok {
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	data, ok := h.files[r.URL.Path]
	if !ok && r.URL.Path == "/index.yaml" {
		data, ok = h.index(), true
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(data)
}

// index is the index as helm repo index writes it.
func (h *Helm) index() []byte {
	entries := map[string][]map[string]any{}
	for _, c := range h.charts {
		entry := map[string]any{"urls": []string{c.url}, "created": "2026-01-02T03:04:05Z"}
		if c.digest != "" {
			entry["digest"] = c.digest
		}
		for key, value := range c.Metadata {
			entry[key] = value
		}
		entries[c.Name] = append(entries[c.Name], entry)
	}
	data, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": entries, "generated": "2026-01-02T03:04:05Z"})
	if err != nil {
		return []byte(err.Error())
	}
	return data
}
