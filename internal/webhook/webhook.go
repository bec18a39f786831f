// Package webhook owns what a forge says when somebody has pushed: it checks the signature, reads the event, and tells
// which repositories and revisions it concerns. Requests are served elsewhere; this package reads values.
//
// It imports git for the comparison of URLs only.
package webhook

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/git"
)

// MaxBody is the size in bytes up to which bodies are read where nothing else is configured: 50 MiB.
const MaxBody = 50 << 20

// Event is a push, or something that needs nothing but an answer.
type Event struct {
	// Ignored says why the event concerns no revision: a ping, or a kind that is not looked at. Empty for a push.
	Ignored string
	// RepoURLs are the forms of the repository's URL that the event names, normalized (see git.Normalize), each once.
	RepoURLs []string
	// Ref is the full name of the ref that moved, such as refs/heads/main.
	Ref string
	// After is the commit that it leads to; empty when the ref was deleted.
	After string
	// Deleted and Created tell that the ref is gone or new; Forced that it did not move forwards.
	Deleted, Created, Forced bool
	// Changed are the files that the commits touched, sorted; Complete tells that none is missing.
	Changed  []string
	Complete bool
	// DefaultBranch tells that Ref is the one that HEAD stands for.
	DefaultBranch bool
}

// Error is a request that is not accepted: a sentence and the HTTP status for it.
type Error struct {
	Status int
	Reason string
}

// Error is the sentence.
func (e *Error) Error() string { return "webhook: " + e.Reason }

// Read reads a body of up to limit bytes; 0 takes MaxBody.
func Read(body io.Reader, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = MaxBody
	}
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big) || int64(len(data)) > limit:
		return nil, &Error{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than the %d bytes that are read", limit)}
	case err != nil:
		return nil, &Error{http.StatusBadRequest, "the body ended before it was whole"}
	}
	return data, nil
}

// Parse reads an event as GitHub, and those who follow it (Gitea, Forgejo, Gogs), send it. With a secret the signature
// must be there and right; without one it is not looked at. Every error is an *Error.
func Parse(header http.Header, body []byte, secret string) (Event, error) {
	if secret != "" {
		if err := verify(header, body, secret); err != nil {
			return Event{}, err
		}
	}
	kind := header.Get("X-GitHub-Event")
	if kind == "" {
		kind = header.Get("X-Gogs-Event")
	}
	payload, err := payloadOf(header, body)
	if err != nil {
		return Event{}, err
	}
	switch kind {
	case "push":
		return parsePush(payload)
	case "ping":
		return Event{Ignored: "ping"}, nil
	case "":
		return Event{}, &Error{http.StatusBadRequest, "the header X-GitHub-Event is missing"}
	}
	return Event{Ignored: "event " + clip(kind)}, nil
}

func clip(s string) string {
	if len(s) > 60 {
		s = s[:60]
	}
	return strings.ToValidUTF8(s, "?")
}

// verify checks the strongest signature that is there.
func verify(header http.Header, body []byte, secret string) error {
	for _, way := range []struct {
		header, prefix string
		hash           func() hash.Hash
	}{
		{"X-Hub-Signature-256", "sha256=", sha256.New},
		{"X-Hub-Signature", "sha1=", sha1.New},
		{"X-Gogs-Signature", "", sha256.New},
	} {
		sent := header.Get(way.header)
		if sent == "" {
			continue
		}
		sum, err := hex.DecodeString(strings.TrimPrefix(sent, way.prefix))
		mac := hmac.New(way.hash, []byte(secret))
		_, _ = mac.Write(body) // a hash takes every write
		if err != nil || !hmac.Equal(mac.Sum(nil), sum) {
			return &Error{http.StatusUnauthorized, "the signature does not match the secret that is configured"}
		}
		return nil
	}
	return &Error{http.StatusUnauthorized, "a secret is configured and the event is not signed; set the same secret at the sender"}
}

// push is the part of a push event that is read.
type push struct {
	Ref        string   `json:"ref"`
	After      string   `json:"after"`
	Deleted    bool     `json:"deleted"`
	Created    bool     `json:"created"`
	Forced     bool     `json:"forced"`
	Commits    []commit `json:"commits"`
	Size       *int     `json:"size"`
	Total      *int     `json:"total_commits"`
	Repository struct {
		CloneURL      string `json:"clone_url"`
		SSHURL        string `json:"ssh_url"`
		HTMLURL       string `json:"html_url"`
		DefaultBranch string `json:"default_branch"`
		MasterBranch  string `json:"master_branch"`
	} `json:"repository"`
}

type commit struct {
	Added    []string `json:"added"`
	Removed  []string `json:"removed"`
	Modified []string `json:"modified"`
}

func parsePush(body []byte) (Event, error) {
	var p push
	if err := json.Unmarshal(body, &p); err != nil {
		return Event{}, &Error{http.StatusBadRequest, "the body is not the JSON of a push event: " + jsonReason(err)}
	}
	p.Deleted = p.Deleted || p.After != "" && strings.Trim(p.After, "0") == ""
	e := Event{Ref: p.Ref, Created: p.Created, Forced: p.Forced, Deleted: p.Deleted}
	r := p.Repository
	for _, u := range []string{r.CloneURL, r.SSHURL, r.HTMLURL} {
		if git.CheckURL(u) == nil {
			e.RepoURLs = append(e.RepoURLs, git.Normalize(u))
		}
	}
	slices.Sort(e.RepoURLs)
	e.RepoURLs = slices.Compact(e.RepoURLs)
	switch {
	case len(e.RepoURLs) == 0:
		return Event{}, &Error{http.StatusBadRequest, "the push event names no repository"}
	case !strings.HasPrefix(e.Ref, "refs/"):
		return Event{}, &Error{http.StatusBadRequest, "the push event names no ref"}
	}
	if !e.Deleted {
		e.After = p.After
	}
	branch := r.DefaultBranch
	if branch == "" {
		branch = r.MasterBranch
	}
	e.DefaultBranch = branch != "" && e.Ref == "refs/heads/"+branch
	e.Changed, e.Complete = p.changed()
	return e, nil
}

// maxListed is how many commits GitHub lists in one event.
const maxListed = 2048

// changed collects the files. The list can not be trusted to be whole when the ref is new or was forced: then commits
// differ that the event does not list.
func (p push) changed() (files []string, complete bool) {
	for _, c := range p.Commits {
		files = append(append(append(files, c.Added...), c.Removed...), c.Modified...)
	}
	slices.Sort(files)
	complete = !p.Created && !p.Forced && !p.Deleted && len(p.Commits) > 0 && len(p.Commits) < maxListed
	for _, n := range []*int{p.Size, p.Total} {
		complete = complete && (n == nil || *n == len(p.Commits))
	}
	return slices.Compact(files), complete
}

func jsonReason(err error) string {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return "the field " + wrong.Field + " has the wrong type"
	case errors.As(err, &syntax):
		return fmt.Sprintf("%s at byte %d", syntax.Error(), syntax.Offset)
	}
	return "it can not be read"
}

// Affects tells whether a source at repoURL and targetRevision may resolve to something else after the event. Hosts are
// compared without port and the whole URL without letter case: an answer too many costs one look at the repository.
//
// A name matches the ref it resolves to; HEAD and the empty revision match the default branch. A semver constraint and
// anything else that can lead to a tag matches every tag. A full commit id never moves.
func Affects(e Event, repoURL, targetRevision string) bool {
	if e.Ignored != "" || !slices.ContainsFunc(e.RepoURLs, sameAs(repoURL)) {
		return false
	}
	target := strings.TrimSpace(targetRevision)
	if target == "" || target == "HEAD" {
		return e.DefaultBranch
	}
	if strings.HasPrefix(target, "refs/") {
		return target == e.Ref
	}
	for _, full := range []string{"refs/heads/" + target, "refs/tags/" + target, "refs/" + target} {
		if full == e.Ref {
			return true
		}
	}
	return strings.HasPrefix(e.Ref, "refs/tags/") && looksLikeRange(target)
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
