// Package webhook owns what a forge or a registry says when somebody has pushed: it checks who says it, reads the event, and
// tells which repositories, revisions and artifacts it concerns. Requests are served elsewhere; this package reads values.
//
// It imports git for the comparison of URLs only.
package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/git"
)

// MaxBody is the size in bytes up to which bodies are read where nothing else is configured: 50 MiB.
const MaxBody = 50 << 20

// maxNames is how many refs or artifacts of one event are looked at, and maxName how long one may be, in bytes.
const (
	maxNames = 5000
	maxName  = 4096
	// maxSniffed is the size in bytes up to which a body is read to find out who sent it, where no header tells.
	maxSniffed = 4 << 20
)

// Event is a push, or something that needs nothing but an answer.
type Event struct {
	// Ignored says why the event concerns no revision: a ping, or a kind that is not looked at. Empty for all else.
	Ignored string
	// Confirm is the address that makes a topic of Amazon SNS send its notifications, for a person to open; with Ignored.
	Confirm string
	// RepoURLs are the forms of the repository's URL that the event names, normalized (see git.Normalize), each once.
	RepoURLs []string
	// Formerly are the forms that the same repository had before it was renamed; for a rename only, which has no Refs.
	Formerly []string
	// Refs are the full names of the refs that moved, are new or are gone, such as refs/heads/main.
	Refs []string
	// DefaultBranch is the branch that HEAD stands for, without refs/heads/; empty where the event does not tell.
	DefaultBranch string
	// Artifacts are what was pushed to a registry, as host/path without tag, each once.
	Artifacts []string
}

// Request is what a sender sent.
type Request struct {
	Header http.Header
	Query  url.Values
	Body   []byte
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

// Parse reads an event of GitHub, Gitea, Forgejo, Gogs, GitLab, Bitbucket Cloud, Bitbucket Data Center, Azure DevOps, AWS
// CodeCommit and ECR (EventBridge or SNS), Harbor, Quay, Docker Hub, Azure Container Registry, and of registries that send
// the notifications of CNCF Distribution. Once a secret is set for any sender, every event must show the secret that is set
// for its own (DESIGN.md §5). Every error is an *Error.
func Parse(r Request, secrets Secrets) (Event, error) {
	for _, s := range senders() {
		if !s.sent(r) {
			continue
		}
		if err := s.verify(r, secrets); err != nil {
			return Event{}, err
		}
		e, err := s.parse(r)
		if err != nil {
			return Event{}, err
		}
		return e.checked()
	}
	return Event{}, &Error{http.StatusBadRequest, "nothing in the request tells who sent it; docs/webhooks.md lists the senders"}
}

// sender is a forge or a registry: how its requests are told, who may send them, and how they are read.
type sender struct {
	sent   func(Request) bool
	verify func(Request, Secrets) error
	parse  func(Request) (Event, error)
}

// senders in the order in which a request is tried: Gitea and Forgejo send the headers of Gogs and of GitHub too.
func senders() []sender {
	has := func(name string) func(Request) bool {
		return func(r Request) bool { return r.Header.Get(name) != "" }
	}
	return []sender{
		{has("X-Gogs-Event"), verifyGogs, parseGitHub},
		{has("X-GitHub-Event"), verifyGitHub, parseGitHub},
		{has("X-Gitlab-Event"), verifyGitLab, parseGitLab},
		{func(r Request) bool { return r.Header.Get("X-Event-Key") != "" && r.Header.Get("X-Hook-UUID") != "" }, verifyBitbucket, parseBitbucket},
		{has("X-Event-Key"), verifyBitbucketServer, parseBitbucketServer},
		{isAzure, verifyAzure, parseAzure},
		{isAWS, verifyAWS, parseAWS},
		{isRegistry, verifyRegistry, parseRegistry},
	}
}

// checked drops what can not be used and tells what is missing.
func (e Event) checked() (Event, error) {
	if e.Ignored != "" {
		return e, nil
	}
	e.RepoURLs, e.Formerly = repositories(e.RepoURLs), repositories(e.Formerly)
	e.Artifacts = names(e.Artifacts, func(s string) bool { return strings.Contains(s, "/") })
	refs := len(e.Refs)
	e.Refs = names(e.Refs, func(s string) bool { return strings.HasPrefix(s, "refs/") })
	switch {
	case len(e.Artifacts) > 0:
		return e, nil
	case len(e.RepoURLs) == 0:
		return Event{}, &Error{http.StatusBadRequest, "the push event names no repository"}
	case len(e.Refs) == 0 && len(e.Formerly) == 0 || len(e.Refs) == 0 && refs > 0:
		return Event{}, &Error{http.StatusBadRequest, "the push event names no ref"}
	}
	return e, nil
}

func repositories(urls []string) []string {
	var list []string
	for _, u := range urls {
		if git.CheckURL(u) == nil {
			list = append(list, git.Normalize(u))
		}
	}
	return names(list, func(string) bool { return true })
}

// sniff reads the body of a sender that no header names.
func sniff(r Request, into any) bool {
	return len(r.Body) <= maxSniffed && json.Unmarshal(r.Body, into) == nil
}

// names sorts, takes each once, and keeps the bounds.
func names(list []string, ok func(string) bool) []string {
	list = slices.DeleteFunc(list, func(s string) bool { return len(s) > maxName || !ok(s) })
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxNames)]
}

func clip(s string) string {
	if len(s) > 60 {
		s = s[:60]
	}
	return strings.ToValidUTF8(s, "?")
}

// decode reads a body; what names it in the error.
func decode(body []byte, what string, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return &Error{http.StatusBadRequest, "the body is not the JSON of " + what + ": " + jsonReason(err)}
	}
	return nil
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
