package chart

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Store answers for repositories and registries. It is safe for use by several goroutines.
type Store struct {
	opts    Options
	cache   *cache
	clients *clients
	flights flights
}

// Open makes a store on a folder, which is made when it is not there.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	if o.Dir == "" {
		return nil, fmt.Errorf("chart cache: no folder is named")
	}
	c, err := openCache(o.Dir, o.MaxBytes, o.Log)
	if err != nil {
		return nil, err
	}
	return &Store{opts: o, cache: c, clients: newClients(o)}, nil
}

// Close gives back the connections.
func (s *Store) Close() error {
	s.clients.close()
	return nil
}

// Versions are the versions of a chart, newest first as far as they are semantic versions. In a registry they are the
// tags of the repository at the URL, or below it when there is a name.
func (s *Store) Versions(ctx context.Context, r Repo, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	u, r, err := r.parse()
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "oci":
		return s.tags(ctx, r, u, name)
	case "http", "https":
		return s.indexVersions(ctx, r, u, name)
	}
	return nil, r.errorf(ErrInvalid, "scheme %q is none of https, http and oci", u.Scheme)
}

// Pull is a chart as a tree with Chart.yaml at the root, or a plain OCI artifact as the tree of its layers, and the digest
// that names the content: of the archive in a Helm repository, of the manifest in a registry. The version is exact; in
// a registry it is a tag or a digest.
func (s *Store) Pull(ctx context.Context, r Repo, name, version string) (tree.FS, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	u, r, err := r.parse()
	if err != nil {
		return nil, "", err
	}
	switch u.Scheme {
	case "oci":
		return s.pullArtifact(ctx, r, u, name, version)
	case "http", "https":
		return s.pullIndexed(ctx, r, u, name, version)
	}
	return nil, "", r.errorf(ErrInvalid, "scheme %q is none of https, http and oci", u.Scheme)
}

// HTTPFile is the file behind an http(s) URL, as a tree with the single file "resource".
func (s *Store) HTTPFile(ctx context.Context, r Repo) (tree.FS, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	u, r, err := r.parse()
	if err != nil {
		return nil, err
	}
	data, err := s.get(ctx, r, request{url: u, origin: u, most: MaxFile, what: "such file"})
	if err != nil {
		return nil, err
	}
	return tree.Map{"resource": data}, nil
}

// request is one GET.
type request struct {
	url *url.URL
	// origin gets the credentials.
	origin *url.URL
	// most is the size of the answer in bytes, what its name in messages.
	most int64
	what string
}

// get is the content of a URL. The server is asked each time, and spares the transfer when nothing has changed; so who
// has no access gets nothing of the cache either. Calls for one URL wait for each other.
func (s *Store) get(ctx context.Context, r Repo, q request) ([]byte, error) {
	release, err := s.flights.enter(ctx, q.url.String())
	if err != nil {
		return nil, r.failed(err)
	}
	defer release()
	client, err := s.clients.client(r, q.origin)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url.String(), http.NoBody)
	if err != nil {
		return nil, r.errorf(ErrInvalid, "the URL can't be requested")
	}
	known, content, have := s.cache.page(q.url.String())
	if have {
		if known.ETag != "" {
			req.Header.Set("If-None-Match", known.ETag)
		}
		if known.LastModified != "" {
			req.Header.Set("If-Modified-Since", known.LastModified)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, r.failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotModified && have {
		return content, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, r.status(resp.StatusCode, q.what)
	}
	data, err := readBounded(resp.Body, q.most)
	if err != nil {
		return nil, r.failed(fmt.Errorf("%s: %w", shownURL(q.url), err))
	}
	s.cache.putPage(q.url.String(), page{ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified")}, data)
	return data, nil
}

func readBounded(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("the answer is longer than %d MB: %w", most>>20, tree.ErrTooLarge)
	}
	return data, nil
}

// flights lets one call at a time work on a key.
type flights struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// enter waits until nobody works on the key and returns what ends the own work.
func (f *flights) enter(ctx context.Context, key string) (func(), error) {
	for {
		f.mu.Lock()
		if f.busy == nil {
			f.busy = map[string]chan struct{}{}
		}
		other, taken := f.busy[key]
		if !taken {
			mine := make(chan struct{})
			f.busy[key] = mine
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.busy, key)
				f.mu.Unlock()
				close(mine)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
