// Package token owns the exchange of long-lived credentials for short-lived ones: of a GitHub App, a service account of
// Google, a service principal of Azure (the contract's §3.1). What it gets is kept in memory until shortly before it ends.
//
// It imports package repository and no other of ours. Neither its errors nor anything else shows what was exchanged: they
// hold numbers, names and the status of an answer, never its text.
package token

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/internal/repository"
)

const (
	// early is how long before its end a token is exchanged anew: a fetch that begins with it may take a while.
	early = 5 * time.Minute
	// askTimeout bounds one exchange.
	askTimeout = 30 * time.Second
	// maxKept bounds the tokens in memory.
	maxKept = 10_000
)

// ErrExchange is the kind of the errors of this package.
var ErrExchange = errors.New("credentials can't be exchanged")

// Exchange gets tokens. The zero value is ready; it is safe for use by several goroutines.
type Exchange struct {
	// Now is the clock; nil takes time.Now.
	Now func() time.Time

	mu   sync.Mutex
	kept map[[32]byte]*slot
}

// slot is the token for one set of credentials; its lock lets one at a time ask.
type slot struct {
	mu    sync.Mutex
	token token
}

// token is what the exchange gave.
type token struct {
	username, password, bearer string
	ends                       time.Time
}

// Apply is the entry with what its credentials were exchanged for, as user and password or as bearer token. An entry
// without such credentials comes back as it is. The authority is that of the host asked, PEM, by the host's URL.
func (x *Exchange) Apply(ctx context.Context, e repository.Entry, authority func(url string) string) (repository.Entry, error) {
	if !e.Any() {
		return e, nil
	}
	q := request{entry: e, now: x.now(), authority: authority}
	s := x.slot(q.id())
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.now.Add(early).After(s.token.ends) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		t, err := q.exchange(ctx)
		if err != nil {
			return e, fmt.Errorf("repository %s: %w", shown(e.URL), err)
		}
		s.token = t
	}
	e.Exchanged = repository.Exchanged{}
	e.Username, e.Password, e.BearerToken = s.token.username, s.token.password, s.token.bearer
	return e, nil
}

// Forget drops the token for an entry, because a server did not take it.
func (x *Exchange) Forget(e repository.Entry) {
	if !e.Any() {
		return
	}
	id := request{entry: e}.id()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.kept, id)
}

func (x *Exchange) now() time.Time {
	if x.Now == nil {
		return time.Now()
	}
	return x.Now()
}

func (x *Exchange) slot(id [32]byte) *slot {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kept == nil || len(x.kept) > maxKept {
		x.kept = map[[32]byte]*slot{}
	}
	s, ok := x.kept[id]
	if !ok {
		s = &slot{}
		x.kept[id] = s
	}
	return s
}

// request is one exchange.
type request struct {
	entry     repository.Entry
	now       time.Time
	authority func(url string) string
}

// id identifies what is exchanged. The installation of a GitHub App that is not named depends on the repository.
func (q request) id() [32]byte {
	place := ""
	if q.entry.GitHubApp != "" && q.entry.GitHubInstallation == "" {
		place = q.entry.URL
	}
	text, _ := json.Marshal([]any{q.entry.Exchanged, place}) // strings only: can not fail
	return sha256.Sum256(text)
}

func (q request) exchange(ctx context.Context) (token, error) {
	switch {
	case q.entry.GitHubApp != "":
		return q.github(ctx)
	case q.entry.GoogleKey != "":
		return q.google(ctx)
	case q.entry.AzureWorkload:
		return token{}, refuse("useAzureWorkloadIdentity is not available: name a service principal in its Secret")
	}
	return q.azure(ctx)
}

func refuse(format string, args ...any) error {
	return exchangeError(fmt.Sprintf(format, args...))
}

// exchangeError is of the kind ErrExchange.
type exchangeError string

func (e exchangeError) Error() string        { return string(e) }
func (e exchangeError) Is(target error) bool { return target == ErrExchange }
