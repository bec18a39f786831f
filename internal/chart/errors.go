package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Kinds of errors, for errors.Is.
var (
	// ErrUnreachable says that the repository did not answer.
	ErrUnreachable = errors.New("can't be reached")
	// ErrAuth says that the repository wants other credentials.
	ErrAuth = errors.New("access denied")
	// ErrNoRepository says that there is something else than a repository at the URL.
	ErrNoRepository = errors.New("no repository")
	// ErrNoChart says that the repository has no chart or artifact of that name.
	ErrNoChart = errors.New("no such chart")
	// ErrNoVersion says that the chart has no such version.
	ErrNoVersion = errors.New("no such version")
	// ErrDigest says that the content is not what the repository announced.
	ErrDigest = errors.New("digest mismatch")
	// ErrRefused says that the address or URL may not be reached.
	ErrRefused = errors.New("not allowed")
	// ErrInvalid says that the repository's answer can't be used.
	ErrInvalid = errors.New("invalid answer")
)

// Error is one sentence about a repository.
type Error struct {
	// Repository is its URL without credentials.
	Repository string
	// Kind is one of the kinds above.
	Kind error
	// Reason is the sentence, without the repository.
	Reason string
	// Err is the cause, where there is one beyond the kind.
	Err error
}

// Error is the sentence.
func (e *Error) Error() string { return "repository " + e.Repository + ": " + e.Reason }

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// errorf makes an Error about the repository.
func (r Repo) errorf(kind error, format string, args ...any) error {
	return &Error{Repository: shown(r.URL), Kind: kind, Reason: fmt.Sprintf(format, args...)}
}

// shown is a URL without credentials and query, which may be secret.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(a URL that can't be read)"
	}
	return shownURL(u)
}

func shownURL(u *url.URL) string {
	clean := *u
	clean.User, clean.RawQuery, clean.Fragment = nil, "", ""
	return clean.String()
}

// failed is the error for a request that got no answer.
func (r Repo) failed(err error) error {
	var mine *Error
	if errors.As(err, &mine) {
		return err
	}
	var refused *refusal
	var address net.Error
	var noTree *url.Error
	reason := err
	if errors.As(err, &noTree) {
		reason = noTree.Err // the URL may hold a token, and the repository is named anyway
	}
	kind, sentence := ErrUnreachable, "can't be reached: "+reason.Error()
	switch {
	case errors.As(err, &refused):
		kind, sentence = ErrRefused, refused.Error()
	case errors.Is(err, tree.ErrTooLarge):
		kind, sentence = ErrInvalid, reason.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &address) && address.Timeout():
		sentence = "did not answer in time"
	case errors.Is(err, context.Canceled):
		sentence = "the request was given up"
	case errors.Is(err, io.ErrUnexpectedEOF):
		sentence = "the connection broke off"
	}
	return &Error{Repository: shown(r.URL), Kind: kind, Reason: sentence, Err: err}
}

// status is the error for an answer other than 200.
func (r Repo) status(code int, what string) error {
	switch code {
	case 401, 403:
		if r.none() {
			return r.errorf(ErrAuth, "asks for credentials (%d) and there are none for it", code)
		}
		return r.errorf(ErrAuth, "refuses the credentials (%d)", code)
	case 404, 410:
		return r.errorf(ErrNoRepository, "has no %s (%d)", what, code)
	}
	return r.errorf(ErrUnreachable, "answers %d for %s", code, what)
}

// refusal is an address or URL that may not be reached.
type refusal struct {
	what, reason string
	err          error
}

func (e *refusal) Error() string { return e.what + " " + e.reason }
func (e *refusal) Unwrap() error { return e.err }

// list names some of many: a, b and 3 more.
func list(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
