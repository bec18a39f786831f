package git

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The kinds of errors, for errors.Is.
var (
	// ErrAuth says that the server wants credentials, or others.
	ErrAuth = errors.New("authentication needed")
	// ErrNotFound says that there is no such repository, or none that these credentials may see.
	ErrNotFound = errors.New("repository not found")
	// ErrUnreachable says that the server did not answer, or not as a Git server does. It may pass by itself.
	ErrUnreachable = errors.New("repository unreachable")
	// ErrUntrusted says that the server could not prove who it is (TLS certificate, ssh host key).
	ErrUntrusted = errors.New("server not trusted")
	// ErrUnknownRevision says that the repository has no such commit or ref.
	ErrUnknownRevision = errors.New("unknown revision")
	// ErrRefused says that we do not do this: a URL, ref or size that is not accepted.
	ErrRefused = errors.New("refused")
	// ErrCorrupt says that a mirror could not be read even after it was fetched again.
	ErrCorrupt = errors.New("mirror corrupt")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("git store is closed")
)

// Error is what went wrong with a repository, one sentence without secrets.
type Error struct {
	// Repo is the URL without user and password.
	Repo string
	// Kind is one of the kinds above, or nil.
	Kind error
	// What happened, and Hint, what to do about it; Hint may be empty.
	What, Hint string
	// Cause is a Go error below, such as the context's; it may be nil.
	Cause error
}

// Error is the sentence: repository URL: what: hint.
func (e *Error) Error() string {
	s := fmt.Sprintf("repository %s: %s", e.Repo, e.What)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap gives kind and cause to errors.Is.
func (e *Error) Unwrap() []error {
	var list []error
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

var userinfo = regexp.MustCompile(`://[^/@\s'"]*@`)

// hideUserinfo takes user and password out of every URL in text, the user of ssh URLs excepted.
func hideUserinfo(text string) string {
	return userinfo.ReplaceAllStringFunc(text, func(m string) string {
		if m == "://git@" {
			return m
		}
		return "://"
	})
}

// scrub removes the secrets and every URL's userinfo from what a program printed.
func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return hideUserinfo(text)
}
