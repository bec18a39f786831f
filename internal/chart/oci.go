package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

const (
	chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// maxTags bounds the tags that are listed.
	maxTags = 100000
	// maxLayers bounds the layers of a plain artifact.
	maxLayers = 100
)

// artifact is one repository in a registry.
type artifact struct {
	Repo
	*remote.Repository
	cache *cache
	name  string
}

func (s *Store) artifact(r Repo, u *url.URL, name string) (*artifact, error) {
	client, err := s.clients.client(r, nil)
	if err != nil {
		return nil, err
	}
	at := strings.Trim(path.Join(u.Path, name), "/")
	if at == "" {
		return nil, r.errorf(ErrInvalid, "names a registry and no repository in it")
	}
	repository, err := remote.NewRepository(u.Host + "/" + at)
	if err != nil || repository.Reference.Reference != "" {
		return nil, r.errorf(ErrInvalid, "%q can't be the name of a repository in a registry", at)
	}
	repository.PlainHTTP = r.PlainHTTP
	repository.Client = &auth.Client{
		Client: client, Cache: auth.NewSingleContextCache(),
		Credential: auth.StaticCredential(repository.Reference.Host(), auth.Credential{
			Username: r.Username, Password: r.Password, AccessToken: r.BearerToken,
		}),
		// Where a token may be asked for is checked when the connection is made, with what the administrator allows.
		BlockedRealmPrefixes: []netip.Prefix{},
	}
	return &artifact{Repo: r, Repository: repository, cache: s.cache, name: path.Base(at)}, nil
}

// failed is the error for a request to the registry.
func (a *artifact) failed(err error) error {
	var answer *errcode.ErrorResponse
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound, errors.Is(err, errdef.ErrNotFound):
		return a.errorf(ErrNoChart, "has no chart or artifact %s", a.Reference.Repository)
	case errors.As(err, &answer):
		return a.status(answer.StatusCode, a.Reference.Repository)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return a.status(http.StatusUnauthorized, "")
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return a.errorf(ErrDigest, "%s: the content is not what its digest says", a.name)
	}
	return a.Repo.failed(err)
}

func (s *Store) tags(ctx context.Context, r Repo, u *url.URL, name string) ([]string, error) {
	a, err := s.artifact(r, u, name)
	if err != nil {
		return nil, err
	}
	tags, err := a.tags(ctx)
	if err != nil {
		return nil, a.failed(err)
	}
	return newestFirst(tags), nil
}

func (a *artifact) tags(ctx context.Context) ([]string, error) {
	var all []string
	err := a.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			all = append(all, versionOf(tag))
		}
		if len(all) > maxTags {
			return a.errorf(ErrInvalid, "%s has more than %d tags", a.name, maxTags)
		}
		return nil
	})
	return all, err
}

// versionOf is the version for which a tag stands: tags can't hold a plus sign, and Helm writes an underscore for it.
func versionOf(tag string) string {
	version := strings.ReplaceAll(tag, "_", "+")
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
		return version
	}
	return tag
}

func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

func (s *Store) pullArtifact(ctx context.Context, r Repo, u *url.URL, name, version string) (tree.FS, string, error) {
	a, err := s.artifact(r, u, name)
	if err != nil {
		return nil, "", err
	}
	top, manifest, err := a.manifest(ctx, version)
	if err != nil {
		return nil, "", err
	}
	files, err := a.unpack(ctx, manifest)
	if err != nil {
		return nil, "", err
	}
	return files, top.Digest.String(), nil
}

// manifest is the manifest of a version. The registry is asked each time, so that a moved tag is seen, and who has no
// access gets nothing of the cache.
func (a *artifact) manifest(ctx context.Context, version string) (ocispec.Descriptor, ocispec.Manifest, error) {
	var manifest ocispec.Manifest
	if version == "" {
		return ocispec.Descriptor{}, manifest, a.errorf(ErrNoVersion, "%s: no version is named", a.name)
	}
	ref := tagOf(version)
	if (registry.Reference{Registry: "r", Repository: "r", Reference: ref}).ValidateReference() != nil {
		return ocispec.Descriptor{}, manifest, a.errorf(ErrNoVersion, "%s: %q can't be a version in a registry", a.name, version)
	}
	top, err := a.Manifests().Resolve(ctx, ref)
	if errors.Is(err, errdef.ErrNotFound) {
		return top, manifest, a.absent(ctx, version)
	}
	if err != nil {
		return top, manifest, a.failed(err)
	}
	desc := top
	if top.MediaType == ocispec.MediaTypeImageIndex || top.MediaType == "application/vnd.docker.distribution.manifest.list.v2+json" {
		var list ocispec.Index
		if err := a.json(ctx, top, &list); err != nil {
			return top, manifest, err
		}
		if len(list.Manifests) != 1 {
			return top, manifest, a.errorf(ErrInvalid, "%s %s has %d variants: name one by its digest", a.name, version, len(list.Manifests))
		}
		desc = list.Manifests[0]
	}
	err = a.json(ctx, desc, &manifest)
	return top, manifest, err
}

// absent is the error for a version that is not there, and says which are.
func (a *artifact) absent(ctx context.Context, version string) error {
	tags, err := a.tags(ctx)
	if err != nil {
		return a.failed(err)
	}
	return a.noVersion(a.name, version, tags)
}

func (a *artifact) json(ctx context.Context, desc ocispec.Descriptor, into any) error {
	data, err := a.content(ctx, desc, maxManifest)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return a.errorf(ErrInvalid, "%s: the manifest is no JSON", a.name)
	}
	return nil
}

// content is what a descriptor describes, from the cache or from the registry, and is what its digest says.
func (a *artifact) content(ctx context.Context, desc ocispec.Descriptor, most int64) ([]byte, error) {
	known := desc.Digest.Validate() == nil && desc.Digest.Algorithm() == digest.SHA256
	if known {
		if data, ok := a.cache.blob(desc.Digest.Encoded()); ok {
			return data, nil
		}
	}
	if desc.Size > most {
		return nil, a.errorf(ErrInvalid, "%s has a part of %d MB, more than %d", a.name, desc.Size>>20, most>>20)
	}
	body, err := a.Fetch(ctx, desc)
	if err != nil {
		return nil, a.failed(err)
	}
	defer func() { _ = body.Close() }()
	data, err := content.ReadAll(body, desc)
	if err != nil {
		return nil, a.failed(err)
	}
	if known {
		a.cache.putBlob(data)
	}
	return data, nil
}

// unpack is the tree of a chart, or of the layers of a plain artifact laid over each other.
func (a *artifact) unpack(ctx context.Context, m ocispec.Manifest) (tree.Map, error) {
	for _, layer := range m.Layers {
		if layer.MediaType != chartLayer {
			continue // a provenance file, perhaps
		}
		data, err := a.content(ctx, layer, MaxArchive)
		if err != nil {
			return nil, err
		}
		files, err := unpackChart(data)
		if err != nil {
			return nil, a.errorf(ErrInvalid, "chart %s: %v", a.name, err)
		}
		return files, nil
	}
	if len(m.Layers) == 0 || len(m.Layers) > maxLayers {
		return nil, a.errorf(ErrInvalid, "%s has %d layers: a chart or artifact has between 1 and %d", a.name, len(m.Layers), maxLayers)
	}
	all := tree.Map{}
	limits := tree.ArchiveLimits{Size: MaxUnpacked, Files: MaxUnpackedFiles}
	for _, layer := range m.Layers {
		data, err := a.content(ctx, layer, MaxArchive)
		if err != nil {
			return nil, err
		}
		files, err := layerFiles(layer, data, limits)
		if err != nil {
			return nil, a.errorf(ErrInvalid, "artifact %s: %v", a.name, err)
		}
		for name, data := range files {
			all[name] = data
			limits.Size -= int64(len(data))
			limits.Files--
		}
	}
	return all, nil
}

// layerFiles are the files of a layer: an archive, or one file that the layer's title names.
func layerFiles(layer ocispec.Descriptor, data []byte, limits tree.ArchiveLimits) (tree.Map, error) {
	title := layer.Annotations[ocispec.AnnotationTitle]
	if strings.Contains(layer.MediaType, "tar") || strings.HasSuffix(title, ".tar.gz") || strings.HasSuffix(title, ".tgz") || title == "" {
		return tree.Untar(bytes.NewReader(data), limits)
	}
	name, err := tree.Clean(title)
	if err != nil {
		return nil, err
	}
	return tree.Map{name: data}, nil
}
