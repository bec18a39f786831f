package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/internal/repository/token"
	"github.com/lockstep-cd/lockstep/internal/resolve"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Sources opens what applications name as their source.
type Sources struct {
	Git          *git.Store
	Charts       *chart.Store
	Repositories *repository.Set
	// NoSubmodules leaves the submodules of all repositories out.
	NoSubmodules bool
	tokens       token.Exchange
	signatures   verdicts
}

// entry is what is known of the repository of a source, its credentials exchanged for what the server takes.
func (s *Sources) entry(ctx context.Context, l located) (repository.Entry, error) {
	return s.tokens.Apply(ctx, s.Repositories.Find(l.RepoURL, l.project), s.Repositories.CA)
}

// owner is the project whose own Secret holds for a source; empty when it is everybody's.
func (s *Sources) owner(l located) string { return s.Repositories.Find(l.RepoURL, l.project).Project }

// key is what is known of the repository of a source under. What a project's own credentials show is not for others, and
// theirs must not fail it.
func (s *Sources) key(l located) string {
	if owner := s.owner(l); owner != "" {
		return repoKey(l.ApplicationSource) + " of project " + owner
	}
	return repoKey(l.ApplicationSource)
}

// noted forgets the token for a source whose server did not take it.
func (s *Sources) noted(l located, err error) error {
	if errors.Is(err, git.ErrAuth) || errors.Is(err, chart.ErrAuth) {
		s.tokens.Forget(s.Repositories.Find(l.RepoURL, l.project))
	}
	return err
}

func isOCI(url string) bool { return strings.HasPrefix(strings.ToLower(url), "oci://") }

func isChart(s v1alpha1.ApplicationSource) bool { return s.Chart != "" || isOCI(s.RepoURL) }

// ask is one look at a repository: its refs, or the versions of a chart.
func (s *Sources) ask(ctx context.Context, l located) (resolve.Refs, []string, error) {
	entry, err := s.entry(ctx, l)
	if err != nil {
		return resolve.Refs{}, nil, err
	}
	if isChart(l.ApplicationSource) {
		versions, err := s.Charts.Versions(ctx, s.chartRepo(entry, l), l.Chart)
		return resolve.Refs{}, versions, s.noted(l, err)
	}
	refs, err := s.Git.Refs(ctx, s.Repositories.Git(entry))
	return resolve.Refs(refs), nil, s.noted(l, err)
}

// open gives the tree of a resolved source, and the revision in full: a commit, or a chart's version.
// Submodules are laid in where may allows their URL.
func (s *Sources) open(ctx context.Context, l located, rev resolve.Revision, may allowing) (tree.FS, string, error) {
	entry, err := s.entry(ctx, l)
	if err != nil {
		return nil, "", err
	}
	if isChart(l.ApplicationSource) {
		t, _, err := s.Charts.Pull(ctx, s.chartRepo(entry, l), l.Chart, rev.Commit)
		return t, rev.Commit, s.noted(l, err)
	}
	repo := s.Repositories.Git(entry)
	commit, err := s.Git.Ensure(ctx, repo, git.Want{Commit: rev.Commit, Ref: rev.Ref})
	if err != nil {
		return nil, "", s.noted(l, err)
	}
	t, err := s.Git.TreeWith(ctx, repo, commit, s.modules(entry, l.project, may))
	return t, commit, err
}

func (s *Sources) chartRepo(e repository.Entry, l located) chart.Repo {
	url := l.RepoURL
	if !strings.Contains(url, "://") {
		url = "oci://" + url // how Argo CD's users name the registry of a chart
	}
	return chart.Repo{URL: url, Credentials: chart.Credentials{
		Username: e.Username, Password: e.Password, BearerToken: e.BearerToken, CA: []byte(s.Repositories.CA(l.RepoURL)),
		ClientCert: []byte(e.ClientCert), ClientKey: []byte(e.ClientKey), Insecure: e.Insecure, PlainHTTP: e.PlainHTTP,
		PassCredentials: l.Helm != nil && l.Helm.PassCredentials, Proxy: e.Proxy, NoProxy: e.NoProxy,
	}}
}

// named is the URL of the repository that a chart names as @name or alias:name.
func (s *Sources) named(name, project string) (string, error) {
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "@"), "alias:")
	e, ok := s.Repositories.Named(bare, project)
	if !ok {
		return "", fmt.Errorf("no repository has the name %q: write its URL, or add a Secret with this name for it", bare)
	}
	if e.Kind == "oci" && !strings.Contains(e.URL, "://") {
		return "oci://" + e.URL, nil
	}
	return e.URL, nil
}

// file is the file behind a URL. Whoever it belongs to gets no credentials of ours.
func (s *Sources) file(ctx context.Context, url string) (tree.FS, error) {
	return s.Charts.HTTPFile(ctx, chart.Repo{URL: url, Credentials: chart.Credentials{CA: []byte(s.Repositories.CA(url))}})
}

// effective are the sources that are rendered: sources before source, the hydrated branch before both.
func effective(spec v1alpha1.ApplicationSpec) []v1alpha1.ApplicationSource {
	switch {
	case spec.SourceHydrator != nil:
		h := spec.SourceHydrator
		url := h.SyncSource.RepoURL
		if url == "" {
			url = h.DrySource.RepoURL
		}
		return []v1alpha1.ApplicationSource{{RepoURL: url, TargetRevision: h.SyncSource.TargetBranch, Path: h.SyncSource.Path}}
	case len(spec.Sources) > 0:
		return spec.Sources
	case spec.Source != nil:
		return []v1alpha1.ApplicationSource{*spec.Source}
	}
	return nil
}

// checkSource says what is wrong with a source before anybody is asked for it.
func checkSource(field string, s v1alpha1.ApplicationSource) error {
	switch {
	case s.RepoURL == "":
		return fmt.Errorf("%s.repoURL: is missing", field)
	case s.Chart != "" && s.Path != "":
		return fmt.Errorf("%s: chart and path exclude each other; a chart of a Helm repository has no path", field)
	case s.Chart != "" && s.Ref != "":
		return fmt.Errorf("%s.ref: a chart can't be referred to; only Git repositories can", field)
	case s.Chart == "" && s.Path == "" && s.Ref == "" && !isOCI(s.RepoURL):
		return fmt.Errorf("%s: path or chart is missing", field)
	}
	if isChart(s) {
		return nil
	}
	if err := git.CheckURL(s.RepoURL); err != nil {
		return fmt.Errorf("%s.repoURL: %w", field, err)
	}
	return nil
}
