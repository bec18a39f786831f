package kustomize

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// remote is a folder of a repository that a kustomization names.
type remote struct {
	// url of the repository, dir the folder in it.
	url, dir string
	// ref is a branch, tag or commit; empty means HEAD.
	ref string
}

func (r remote) locator() job.Locator {
	return job.Locator{Kind: job.LocateGit, URL: r.url, Revision: r.ref}
}

var userName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// parseRemote reads kustomize's grammar of repositories:
//
//	[git::][https://|http://|ssh://|file://][user@]host/org/repo[.git|//]/dir?ref=…
//	user@host:org/repo[.git|//]/dir?ref=…
//	github.com/org/repo/dir?ref=… and github.com:org/repo/dir
//
// Where the repository ends is told by _git/, a double slash or .git, else it is two elements long. Anything else is a local
// path.
func parseRemote(s string) (remote, bool) {
	if path.IsAbs(s) {
		return remote{}, false
	}
	rest, query, _ := strings.Cut(s, "?")
	// Parameters that can not be read count as absent.
	values, err := url.ParseQuery(query)
	if err != nil {
		values = nil
	}
	ref := values.Get("ref")
	if ref == "" {
		ref = values.Get("version")
	}
	host, rest, ok := cutHost(rest)
	if !ok {
		return remote{}, false
	}
	repository, dir := cutRepository(rest, strings.HasPrefix(host, "file://"))
	dir = strings.TrimPrefix(dir, "/")
	if clean := path.Clean(dir); repository == "" || clean == ".." || strings.HasPrefix(clean, "../") {
		return remote{}, false
	}
	return remote{url: host + repository, dir: path.Clean(dir), ref: ref}, true
}

// cutHost splits off scheme, user and host with the separator after them.
func cutHost(s string) (host, rest string, ok bool) {
	s, _ = cutPrefixFold(s, "git::")
	scheme := ""
	for _, known := range []string{"ssh://", "https://", "http://", "file://"} {
		if after, found := cutPrefixFold(s, known); found {
			scheme, s = known, after
			break
		}
	}
	user := userName.FindString(s)
	s = s[len(user):]
	github := hasPrefixFold(s, "github.com/") || hasPrefixFold(s, "github.com:")
	// Without a scheme it is scp's syntax, for which a user is needed, save for GitHub.
	scp := scheme == "" && (user != "" || github)
	switch {
	case scheme == "" && !scp:
		return "", "", false
	case scheme == "file://":
		return scheme, user + s, true
	}
	end := strings.Index(s, "/")
	if colon := strings.Index(s, ":"); scp && (end < 0 || colon > 0 && colon < end) {
		end = colon
	}
	host, rest = s[:end+1], s[end+1:]
	if end < 0 {
		host, rest = s, ""
	}
	if github {
		if scheme == "ssh://" || user != "" {
			return user + "github.com:", rest, true
		}
		return "https://github.com/", rest, true
	}
	return scheme + user + host, rest, host != ""
}

// cutRepository splits the path of a repository from the folder in it.
func cutRepository(s string, local bool) (repository, dir string) {
	if before, after, ok := strings.Cut(s, "_git/"); ok {
		name, dir, _ := strings.Cut(after, "/")
		return before + "_git/" + name, dir
	}
	if before, after, ok := strings.Cut(s, "//"); ok {
		return before, after
	}
	if before, after, ok := strings.Cut(s, ".git"); ok {
		return before + ".git", after
	}
	if local {
		return s, ""
	}
	parts := strings.SplitN(s, "/", 3)
	if len(parts) < 2 {
		return "", ""
	}
	return strings.Join(parts[:2], "/"), strings.Join(parts[2:], "/")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if hasPrefixFold(s, prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// isWeb tells whether kustomize would load s over http.
func isWeb(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// looksLikeFile tells what to try first for a URL that can be a file as well as a repository. Kustomize asks the server;
// we would rather ask once.
func looksLikeFile(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	for _, parameter := range []string{"ref", "version", "submodules", "timeout"} {
		if u.Query().Has(parameter) {
			return false
		}
	}
	if strings.Contains(u.Path, "//") || strings.Contains(u.Path, "_git/") || strings.Contains(u.Path+"/", ".git/") {
		return false
	}
	switch path.Ext(u.Path) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return !strings.EqualFold(u.Host, "github.com")
}
