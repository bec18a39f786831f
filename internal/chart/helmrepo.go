package chart

import (
	"bytes"
	"context"
	"net/url"
	"path"
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// index fetches the index of a Helm repository.
func (s *Store) index(ctx context.Context, r Repo, u *url.URL) (*index, error) {
	at := *u
	at.Path = strings.TrimSuffix(at.Path, "/") + "/index.yaml"
	at.RawPath = ""
	text, err := s.get(ctx, r, request{url: &at, origin: u, most: MaxIndex, what: "index.yaml"})
	if err != nil {
		return nil, err
	}
	x, err := parseIndex(text)
	if err != nil {
		return nil, r.errorf(ErrNoRepository, "its index.yaml %v", err)
	}
	return x, nil
}

// entries are the versions of a chart in a Helm repository.
func (s *Store) entries(ctx context.Context, r Repo, u *url.URL, name string) ([]entry, error) {
	x, err := s.index(ctx, r, u)
	if err != nil {
		return nil, err
	}
	all, ok, err := x.chart(name)
	if err != nil {
		return nil, r.errorf(ErrInvalid, "its index.yaml %v", err)
	}
	if !ok || len(all) == 0 {
		if meant := near(name, x.charts()); len(meant) > 0 {
			return nil, r.errorf(ErrNoChart, "has no chart %q: did you mean %s?", name, strings.Join(meant, " or "))
		}
		return nil, r.errorf(ErrNoChart, "has no chart %q", name)
	}
	return all, nil
}

func (s *Store) indexVersions(ctx context.Context, r Repo, u *url.URL, name string) ([]string, error) {
	all, err := s.entries(ctx, r, u, name)
	if err != nil {
		return nil, err
	}
	return newestFirst(versionsOf(all)), nil
}

func versionsOf(all []entry) []string {
	versions := make([]string, 0, len(all))
	for _, e := range all {
		versions = append(versions, e.Version)
	}
	return versions
}

// newestFirst sorts semantic versions from the newest on, and puts what is none behind them.
func newestFirst(versions []string) []string {
	parsed := make(map[string]*semver.Version, len(versions))
	for _, v := range versions {
		if sv, err := semver.NewVersion(v); err == nil {
			parsed[v] = sv
		}
	}
	sort.SliceStable(versions, func(i, j int) bool {
		a, b := parsed[versions[i]], parsed[versions[j]]
		switch {
		case a == nil || b == nil:
			return a != nil && b == nil
		default:
			return a.GreaterThan(b)
		}
	})
	return versions
}

// noVersion says which versions there are.
func (r Repo) noVersion(name, version string, have []string) error {
	if len(have) == 0 {
		return r.errorf(ErrNoVersion, "chart %s has no version %s, it has none at all", name, version)
	}
	return r.errorf(ErrNoVersion, "chart %s has no version %s: it has %s", name, version, list(newestFirst(have), 5))
}

func (s *Store) pullIndexed(ctx context.Context, r Repo, u *url.URL, name, version string) (tree.FS, string, error) {
	all, err := s.entries(ctx, r, u, name)
	if err != nil {
		return nil, "", err
	}
	var found *entry
	for i := range all {
		// Some repositories write v1.2.3 where others write 1.2.3.
		exact := all[i].Version == version
		if exact || found == nil && strings.TrimPrefix(all[i].Version, "v") == strings.TrimPrefix(version, "v") {
			found = &all[i]
		}
		if exact {
			break
		}
	}
	if found == nil {
		return nil, "", r.noVersion(name, version, versionsOf(all))
	}
	if len(found.URLs) == 0 {
		return nil, "", r.errorf(ErrInvalid, "chart %s %s has no URL in index.yaml", name, version)
	}
	at, err := archiveURL(u, found.URLs[0])
	if err != nil {
		return nil, "", r.errorf(ErrInvalid, "chart %s %s has a URL in index.yaml that can't be read", name, version)
	}
	if at.Scheme == "oci" {
		return s.pullReferred(ctx, r, u, at)
	}
	data, err := s.archive(ctx, r, u, at, *found, name)
	if err != nil {
		return nil, "", err
	}
	files, err := unpackChart(data)
	if err != nil {
		return nil, "", r.errorf(ErrInvalid, "chart %s %s: %v", name, version, err)
	}
	return files, "sha256:" + hexSum(data), nil
}

// archiveURL is the URL of a chart: absolute, or relative to the repository.
func archiveURL(repo *url.URL, ref string) (*url.URL, error) {
	at, err := url.Parse(ref)
	if err != nil || at.IsAbs() {
		return at, err
	}
	base := *repo
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	base.RawPath = ""
	out := base.ResolveReference(at)
	if out.RawQuery == "" && out.Host == repo.Host {
		out.RawQuery = repo.RawQuery // some repositories want their token with each request
	}
	return out, nil
}

// archive is the packed chart of an index entry.
func (s *Store) archive(ctx context.Context, r Repo, u, at *url.URL, e entry, name string) ([]byte, error) {
	want := strings.TrimPrefix(strings.ToLower(e.Digest), "sha256:")
	if want != "" {
		// Who may read the index may have the archive: the index was just answered for these credentials.
		if data, ok := s.cache.blob(want); ok {
			return data, nil
		}
	}
	data, err := s.get(ctx, r, request{url: at, origin: u, most: MaxArchive, what: "file " + path.Base(at.Path)})
	if err != nil {
		return nil, err
	}
	if sum := hexSum(data); want != "" && sum != want {
		return nil, r.errorf(ErrDigest, "chart %s %s: the archive has digest sha256:%s, index.yaml says sha256:%s", name, e.Version, sum, want)
	}
	s.cache.putBlob(data)
	return data, nil
}

// pullReferred pulls a chart for which an index names a place in a registry.
func (s *Store) pullReferred(ctx context.Context, r Repo, u, at *url.URL) (tree.FS, string, error) {
	version := ""
	if i := strings.LastIndex(at.Path, ":"); i >= 0 {
		at.Path, version = at.Path[:i], at.Path[i+1:]
	}
	registry := Repo{URL: at.String(), Credentials: r.Credentials}
	if at.Host != u.Host && !r.PassCredentials {
		registry.Username, registry.Password, registry.BearerToken = "", "", ""
	}
	return s.pullArtifact(ctx, registry, at, "", version)
}

// unpackChart is the chart in an archive, without the folder of its name that everything lies in.
func unpackChart(data []byte) (tree.Map, error) {
	all, err := tree.Untar(bytes.NewReader(data), tree.ArchiveLimits{Size: MaxUnpacked, Files: MaxUnpackedFiles})
	if err != nil {
		return nil, err
	}
	files := make(tree.Map, len(all))
	for name, data := range all {
		if _, rest, ok := strings.Cut(name, "/"); ok {
			files[rest] = data
		}
	}
	return files, nil
}
