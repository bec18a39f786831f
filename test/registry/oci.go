package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// OCI is a registry that keeps what it has in memory.
type OCI struct {
	server

	mu     sync.Mutex
	tokens map[string]bool
}

// StartOCI starts an empty registry. With user and password it asks for them with each request.
func StartOCI(o Options) *OCI {
	r := &OCI{}
	r.start(o, r.handler(), `Basic realm="registry"`)
	return r
}

// StartTokenOCI starts an empty registry that wants a token, which it gives at /token for user and password, as the large
// public registries do.
func StartTokenOCI(o Options) *OCI {
	r := &OCI{tokens: map[string]bool{}}
	r.start(Options{TLS: o.TLS}, r.withTokens(r.handler(), o), "")
	return r
}

func (r *OCI) handler() http.Handler {
	return registry.New(registry.Logger(log.New(io.Discard, "", 0)))
}

func (r *OCI) withTokens(next http.Handler, o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/token" {
			user, password, _ := req.BasicAuth()
			if !same(user, o.Username) || !same(password, o.Password) {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			token := rand.Text()
			r.mu.Lock()
			r.tokens[token] = true
			r.mu.Unlock()
			_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
			return
		}
		r.mu.Lock()
		known := r.tokens[strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")]
		r.mu.Unlock()
		if !known {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="test"`, r.http.URL))
			http.Error(w, "token, please", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// URL of the registry, with scheme oci.
func (r *OCI) URL() string { return "oci://" + r.Host() }

// Layer is one layer of a plain artifact.
type Layer struct {
	MediaType string
	// Title is the name of the file, for layers that are no archive.
	Title string
	Data  []byte
}

// Media types of charts, and of the plain artifacts that people push.
const (
	ChartConfig   = "application/vnd.cncf.helm.config.v1+json"
	ChartLayer    = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	ArtifactLayer = ocispec.MediaTypeImageLayerGzip
)

// Login is what Push authenticates with.
type Login struct{ Username, Password string }

// PushChart packs a chart and pushes it below a path, as helm push does; it returns the digest of the manifest.
func (r *OCI) PushChart(ctx context.Context, l Login, below string, files map[string]string) (string, error) {
	c, err := Pack(files)
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(c.Metadata)
	if err != nil {
		return "", err
	}
	tag := strings.ReplaceAll(c.Version, "+", "_")
	layers := []Layer{{MediaType: ChartLayer, Data: c.Archive}}
	return r.push(ctx, l, strings.Trim(below+"/"+c.Name, "/")+":"+tag, Layer{MediaType: ChartConfig, Data: config}, layers)
}

// PushArtifact pushes layers as REPOSITORY:TAG and returns the digest of the manifest.
func (r *OCI) PushArtifact(ctx context.Context, l Login, reference string, layers ...Layer) (string, error) {
	return r.push(ctx, l, reference, Layer{MediaType: ocispec.MediaTypeEmptyJSON, Data: []byte("{}")}, layers)
}

func (r *OCI) push(ctx context.Context, l Login, reference string, config Layer, layers []Layer) (string, error) {
	repository, err := remote.NewRepository(r.Host() + "/" + reference)
	if err != nil {
		return "", err
	}
	repository.PlainHTTP = !r.opts.TLS
	repository.Client = &auth.Client{
		Client: r.http.Client(), BlockedRealmPrefixes: []netip.Prefix{},
		Credential: auth.StaticCredential(r.Host(), auth.Credential{Username: l.Username, Password: l.Password}),
	}
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	if manifest.Config, err = pushBlob(ctx, repository, config); err != nil {
		return "", err
	}
	for _, layer := range layers {
		desc, err := pushBlob(ctx, repository, layer)
		if err != nil {
			return "", err
		}
		manifest.Layers = append(manifest.Layers, desc)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return "", err
	}
	desc := describe(Layer{MediaType: manifest.MediaType, Data: data})
	return desc.Digest.String(), repository.PushReference(ctx, desc, bytes.NewReader(data), repository.Reference.Reference)
}

func pushBlob(ctx context.Context, repository *remote.Repository, l Layer) (ocispec.Descriptor, error) {
	desc := describe(l)
	return desc, repository.Push(ctx, desc, bytes.NewReader(l.Data))
}

func describe(l Layer) ocispec.Descriptor {
	desc := ocispec.Descriptor{MediaType: l.MediaType, Digest: digest.FromBytes(l.Data), Size: int64(len(l.Data))}
	if l.Title != "" {
		desc.Annotations = map[string]string{ocispec.AnnotationTitle: l.Title}
	}
	return desc
}
