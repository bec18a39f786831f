package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"

	helmregistry "helm.sh/helm/v4/pkg/registry"

	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/registry"
)

// offer serves repositories and charts under their public URLs.
type offer struct {
	urls *urlMap
	git  *gitserver.Server
	helm map[string]*registry.Helm
	oci  map[string]*registry.OCI
}

func startOffer(dir string) (o *offer, err error) {
	o = &offer{helm: map[string]*registry.Helm{}, oci: map[string]*registry.OCI{}}
	if o.urls, err = startURLMap(); err != nil {
		return nil, err
	}
	if o.git, err = gitserver.Start(gitserver.Options{Dir: filepath.Join(dir, "git")}); err != nil {
		o.urls.close()
		return nil, err
	}
	return o, nil
}

func (o *offer) close() {
	o.urls.close()
	for _, h := range o.helm {
		h.Close()
	}
	for _, r := range o.oci {
		r.Close()
	}
	_ = o.git.Close()
}

// repository serves a checkout at its public URL, the commits at least.
func (o *offer) repository(ctx context.Context, c *checkout, commits []string) error {
	if err := c.serve(ctx, o.git.Dir(), commits); err != nil {
		return fmt.Errorf("%s: %w", c.url, err)
	}
	host := c.url.Host
	o.urls.add(c.url.Hostname(), c.url.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/" + host + r.URL.Path // the server has the repositories of all hosts
		o.git.ServeHTTP(w, r)
	}))
	return nil
}

// publish serves a packed chart where it is published.
func (o *offer) publish(ctx context.Context, c *packed) error {
	u, err := url.Parse(c.repository)
	if err != nil {
		return fmt.Errorf("repository %s: %w", c.repository, err)
	}
	switch u.Scheme {
	case "http", "https":
		return o.publishHelm(c, u)
	case "oci":
		return o.publishOCI(ctx, c, u)
	}
	return fmt.Errorf("repository %s: is neither https:// nor oci://", c.repository)
}

func (o *offer) publishHelm(c *packed, u *url.URL) error {
	h := o.helm[c.repository]
	if h == nil {
		h = registry.StartHelm(registry.Options{})
		o.helm[c.repository] = h
		to, err := url.Parse(h.URL())
		if err != nil {
			return err
		}
		o.urls.add(u.Hostname(), u.Path, http.StripPrefix(u.Path, httputil.NewSingleHostReverseProxy(to)))
	}
	metadata, err := c.metadata()
	if err != nil {
		return err
	}
	m := c.chart.Metadata
	file := fmt.Sprintf("%s-%s.tgz", m.Name, m.Version)
	sum := sha256.Sum256(c.archive)
	h.Put(file, c.archive)
	h.AddAt(registry.Chart{Name: m.Name, Version: m.Version, Metadata: metadata, Archive: c.archive}, file, hex.EncodeToString(sum[:]))
	return nil
}

func (o *offer) publishOCI(ctx context.Context, c *packed, u *url.URL) error {
	r := o.oci[u.Host]
	if r == nil {
		r = registry.StartOCI(registry.Options{})
		o.oci[u.Host] = r
		to, err := url.Parse("http://" + r.Host())
		if err != nil {
			return err
		}
		o.urls.add(u.Hostname(), "/v2", httputil.NewSingleHostReverseProxy(to))
	}
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(io.Discard))
	if err != nil {
		return err
	}
	m := c.chart.Metadata
	reference := fmt.Sprintf("%s/%s/%s:%s", r.Host(), strings.Trim(u.Path, "/"), m.Name, strings.ReplaceAll(m.Version, "+", "_"))
	if _, err := client.Push(c.archive, reference); err != nil {
		return fmt.Errorf("chart %s: push to %s: %w", m.Name, c.repository, err)
	}
	return ctx.Err()
}
