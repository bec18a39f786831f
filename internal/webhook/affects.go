package webhook

import (
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/git"
)

// Source is what an application follows.
type Source struct {
	RepoURL, Chart, TargetRevision string
}

// Affects tells whether a source may resolve to something else after the event. Hosts are compared without port and the
// whole URL without letter case: an answer too many costs one look at the repository.
//
// A name matches the ref it resolves to; HEAD and the empty revision match the default branch, and every branch where the
// event does not tell which one that is. A semver constraint and anything else that can lead to a tag matches every tag. A
// full commit id never moves. A chart or artifact of a registry matches whatever its tag.
func Affects(e Event, s Source) bool {
	if e.Ignored != "" {
		return false
	}
	if len(e.Artifacts) > 0 {
		return slices.ContainsFunc(e.Artifacts, sameArtifact(s))
	}
	if s.Chart != "" || !slices.ContainsFunc(e.RepoURLs, sameAs(s.RepoURL)) {
		return false
	}
	target := strings.TrimSpace(s.TargetRevision)
	return slices.ContainsFunc(e.Refs, func(ref string) bool { return leadsTo(target, ref, e.DefaultBranch) })
}

func leadsTo(target, ref, defaultBranch string) bool {
	switch {
	case target == "" || target == "HEAD":
		return ref == "refs/heads/"+defaultBranch || defaultBranch == "" && strings.HasPrefix(ref, "refs/heads/")
	case strings.HasPrefix(target, "refs/"):
		return target == ref
	case ref == "refs/heads/"+target || ref == "refs/tags/"+target || ref == "refs/"+target:
		return true
	}
	return strings.HasPrefix(ref, "refs/tags/") && looksLikeRange(target)
}

// looksLikeRange is generous: it lets through whatever can be a semver constraint. With a tag prefix a version alone is
// the end of a tag's name, so versions count.
func looksLikeRange(target string) bool {
	if len(target) >= 40 && strings.Trim(strings.ToLower(target), "0123456789abcdef") == "" {
		return false
	}
	return strings.ContainsAny(target, "*<>=^~|, ") || strings.IndexFunc(strings.TrimPrefix(target, "v"), isDigit) == 0
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func sameAs(repoURL string) func(string) bool {
	want := withoutPort(git.Normalize(repoURL))
	return func(have string) bool { return strings.EqualFold(withoutPort(have), want) }
}

// sameArtifact compares with the artifact of a source of a registry: the repository with the chart's name behind it.
func sameArtifact(s Source) func(string) bool {
	scheme, want, found := strings.Cut(s.RepoURL, "://")
	switch {
	case !found && s.Chart != "":
		want = s.RepoURL
	case !strings.EqualFold(scheme, "oci"):
		return func(string) bool { return false }
	}
	want = strings.TrimSuffix(want, "/")
	if s.Chart != "" {
		want += "/" + s.Chart
	}
	return func(have string) bool { return strings.EqualFold(hub(withoutPort(have)), hub(withoutPort(want))) }
}

// hub gives Docker Hub its one name.
func hub(ref string) string {
	for _, other := range []string{"docker.io/", "index.docker.io/"} {
		if rest, ok := strings.CutPrefix(ref, other); ok {
			return dockerHub + "/" + rest
		}
	}
	return ref
}

// withoutPort takes the port out of a key: ssh and https of one forge listen on different ones.
func withoutPort(key string) string {
	host, path, ok := strings.Cut(key, "/")
	if !ok {
		return key
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexFunc(host[i+1:], func(r rune) bool { return !isDigit(r) }) < 0 && strings.Count(host, ":") == 1 {
		host = host[:i]
	}
	return host + "/" + path
}
