package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/queue"
	"github.com/lockstep-cd/lockstep/internal/resolve"
)

const (
	// maxHistory bounds the commits that a strict policy looks at.
	maxHistory = 10_000
	// maxVerified bounds the verdicts in memory.
	maxVerified = 100_000
)

// verdicts remembers commits whose signatures were accepted, by the keys they were held against.
type verdicts struct {
	mu   sync.Mutex
	good map[string]bool
}

func (v *verdicts) has(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.good[id]
}

func (v *verdicts) add(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.good == nil || len(v.good) > maxVerified {
		v.good = map[string]bool{}
	}
	v.good[id] = true
}

// signed says why a source's commit is not signed as the project demands, before anything is taken from it or from what was
// rendered before.
func (c *Chain) signed(ctx context.Context, r request, revs []resolve.Revision) error {
	if r.demanded == "" {
		return nil
	}
	for i, rev := range revs {
		s, err := c.openOne(ctx, r, i, rev)
		if err != nil {
			return err
		}
		if err := c.Sources.verified(ctx, r.rules, located{s.source, projectOf(r.app)}, s.revision); err != nil {
			return err
		}
	}
	return nil
}

// verified says why a commit is not signed as the project demands; nil when it is. Charts and artifacts are no commits.
func (s *Sources) verified(ctx context.Context, rules project.Rules, l located, commit string) error {
	if isChart(l.ApplicationSource) {
		return nil
	}
	for _, d := range rules.Demands(l.RepoURL) {
		if err := s.fulfils(ctx, d, l, commit); err != nil {
			return fmt.Errorf("repository %s: %w; the project demands signed commits", l.RepoURL, err)
		}
	}
	return nil
}

func (s *Sources) fulfils(ctx context.Context, d project.Demand, l located, commit string) error {
	entry, err := s.entry(ctx, l)
	if err != nil {
		return err
	}
	repo := s.Repositories.Git(entry)
	most := 1
	if d.Strict {
		if repo.Depth > 0 {
			return errors.New("a strict policy looks at all commits, and depth leaves some out")
		}
		most = maxHistory
	}
	ring := s.Repositories.Ring()
	return s.Git.Commits(ctx, repo, commit, most, func(id string, read func() ([]byte, error)) error {
		known := strings.Join(append([]string{ring.Version(), id}, d.Keys...), " ")
		if s.signatures.has(known) {
			return nil
		}
		raw, err := read()
		if err != nil {
			return err
		}
		if err := ring.Commit(raw, d.Keys, time.Now()); err != nil {
			return fmt.Errorf("commit %s %w", id, err)
		}
		s.signatures.add(known)
		return nil
	})
}

// demanded is what decides over signatures of an application's sources; empty where none is demanded.
func (s *Sources) demanded(r request) string {
	if !r.rules.Signed() {
		return ""
	}
	all := s.Repositories.Ring().Version()
	for _, source := range r.sources {
		all += fmt.Sprintf(" %+v", r.rules.Demands(source.RepoURL))
	}
	return all
}

// putSigningKeys takes the keys of argocd-gpg-keys-cm.
func (e *Engine) putSigningKeys(byName map[string]string) {
	e.opts.Repositories.SigningKeys(byName)
	if broken := e.opts.Repositories.Ring().Broken(); len(broken) > 0 {
		e.log.Warn("argocd-gpg-keys-cm has values that are no public keys", "names", broken)
	}
	e.onSigningKeys()
}

// onSigningKeys wakes the applications whose projects demand signatures.
func (e *Engine) onSigningKeys() {
	for _, key := range e.applications.keys() {
		app, err := e.applications.get(key)
		if err != nil || app == nil {
			continue
		}
		if rules, ok := e.projects.rules(projectOf(app)); ok && rules.Signed() {
			e.rouse(InputSecret, key, queue.Commits)
		}
	}
}
