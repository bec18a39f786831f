package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	keepRefs = "refs/lockstep/keep/"
	allRefs  = "refs/lockstep/all/"
)

// mirror is the bare repository of one remote. It lies in a numbered folder; a damaged one is replaced by the next
// number, so that a reader of the old one can never be taken for one of the new.
type mirror struct {
	key, base string
	// turn is held by the one who writes.
	turn chan struct{}

	mu sync.Mutex
	// number of the folder in use, 0 before it was opened.
	number int
	// kept are the commits that a ref of ours holds, complete with all they need, and when they were last asked for;
	// zero for those found at the start.
	kept map[string]time.Time
	// alias leads from short ids and ids of tag objects to commits.
	alias map[string]string
}

func mirrorName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:12])
}

func (s *Store) mirror(key string) *mirror {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.mirrors[key]
	if !ok {
		m = &mirror{
			key: key, base: filepath.Join(s.opt.Dir, "mirrors", mirrorName(key)),
			turn: make(chan struct{}, 1), kept: map[string]time.Time{}, alias: map[string]string{},
		}
		s.mirrors[key] = m
	}
	return m
}

func (m *mirror) lock(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *mirror) unlock() { <-m.turn }

// at is the folder in use and its number.
func (m *mirror) at() (string, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dir(m.number), m.number
}

func (m *mirror) dir(number int) string { return filepath.Join(m.base, strconv.Itoa(number)+".git") }

// has gives the commit that id stands for if it is kept, and notes that it was asked for.
func (m *mirror) has(id string, now time.Time) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to, ok := m.alias[id]; ok {
		id = to
	}
	if _, ok := m.kept[id]; !ok {
		return "", false
	}
	m.kept[id] = now
	return id, true
}

// open makes the mirror usable: it creates it with the object format of hashes of hashLen characters, or reads which
// commits it keeps. The caller has the turn.
func (s *Store) open(ctx context.Context, m *mirror, hashLen int) error {
	if _, number := m.at(); number > 0 {
		return nil
	}
	number := newest(m.base)
	for n := range number { // older ones were being thrown away
		_ = os.RemoveAll(m.dir(n))
	}
	if number > 0 {
		kept, err := s.readKept(ctx, m.dir(number))
		if err == nil {
			m.use(number, kept)
			return nil
		}
		var f *failure
		if !errors.As(err, &f) || f.cause != nil || !classify(f.stderr).is(ErrCorrupt) {
			return err
		}
		s.opt.Log.Warn("mirror is damaged and is fetched again", "component", "git", "repository", m.key, "error", err)
	}
	if err := s.create(ctx, m, number+1, hashLen); err != nil {
		return err
	}
	return os.RemoveAll(m.dir(number))
}

func newest(base string) int {
	list, _ := os.ReadDir(base) // absent: there is none
	highest := 0
	for _, e := range list {
		if n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".git")); err == nil && n > highest {
			highest = n
		}
	}
	return highest
}

func (s *Store) readKept(ctx context.Context, dir string) (map[string]time.Time, error) {
	removeLocks(dir)
	out, err := s.local(ctx, dir, "for-each-ref", "--format=%(refname)", keepRefs)
	if err != nil {
		return nil, err
	}
	kept := map[string]time.Time{}
	for line := range strings.Lines(string(out)) {
		if id := strings.TrimPrefix(strings.TrimSpace(line), keepRefs); fullHash(id) {
			kept[id] = time.Time{}
		}
	}
	return kept, nil
}

func (m *mirror) use(number int, kept map[string]time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number, m.kept, m.alias = number, kept, map[string]string{}
}

// create makes an empty mirror beside and renames it, so that a half-made one is never found.
func (s *Store) create(ctx context.Context, m *mirror, number, hashLen int) error {
	if err := os.MkdirAll(m.base, 0o700); err != nil {
		return err
	}
	format := "sha1"
	if hashLen == 64 {
		format = "sha256"
	}
	half := filepath.Join(m.base, "new")
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	if _, err := s.local(ctx, "", "init", "--bare", "--quiet", "--template=", "--object-format="+format, half); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(half, "description"), []byte(m.key+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(half, m.dir(number)); err != nil {
		return err
	}
	m.use(number, map[string]time.Time{})
	return nil
}

// replace throws the mirror of that number away, unless somebody else has done so. The caller has the turn.
func (s *Store) replace(ctx context.Context, m *mirror, number, hashLen int) error {
	dir, now := m.at()
	if now != number {
		return nil
	}
	s.opt.Log.Warn("mirror is damaged and is fetched again", "component", "git", "repository", m.key)
	if err := s.create(ctx, m, number+1, hashLen); err != nil {
		return err
	}
	s.readers.drop(dir)
	return os.RemoveAll(dir)
}

// keep holds the commit with a ref of ours. The caller has the turn and knows that the commit is complete.
func (s *Store) keep(ctx context.Context, m *mirror, asked, commit string) error {
	dir, _ := m.at()
	if _, err := s.local(ctx, dir, "update-ref", keepRefs+commit, commit); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[commit] = s.opt.Now()
	if asked != commit {
		m.alias[asked] = commit
	}
	return nil
}

// Keep says which commits of the repository are in use or in a history: those are kept, others are let go once nobody
// has asked for them for Options.Grace. It tidies the mirror up when that is due.
func (s *Store) Keep(ctx context.Context, r Repo, commits []string) error {
	used := make(map[string]bool, len(commits))
	for _, c := range commits {
		used[c] = true
	}
	limit := s.opt.Now().Add(-s.opt.Grace)
	return s.letGo(ctx, r, func(commit string, asked time.Time) bool {
		return !used[commit] && asked.Before(limit)
	})
}

// Release lets one commit go at once.
func (s *Store) Release(ctx context.Context, r Repo, commit string) error {
	return s.letGo(ctx, r, func(c string, _ time.Time) bool { return c == commit })
}

func (s *Store) letGo(ctx context.Context, r Repo, drop func(string, time.Time) bool) error {
	a, err := s.locate(r.URL)
	if err != nil {
		return err
	}
	m := s.mirror(a.key())
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	if newest(m.base) == 0 {
		return nil
	}
	if err := s.open(ctx, m, 40); err != nil {
		return explain(a.remote, err, nil)
	}
	dir, _ := m.at()
	gone := m.forget(drop)
	if len(gone) > 0 {
		var script strings.Builder
		for _, c := range gone {
			fmt.Fprintf(&script, "delete %s%s\n", keepRefs, c)
		}
		p := program{gitDir: dir, args: []string{"update-ref", "--stdin"}, stdin: strings.NewReader(script.String())}
		if _, err := s.run(ctx, p); err != nil {
			return explain(a.remote, err, nil)
		}
	}
	if err := s.tidy(ctx, dir); err != nil {
		return explain(a.remote, err, nil)
	}
	return nil
}

func (m *mirror) forget(drop func(string, time.Time) bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []string
	for c, asked := range m.kept {
		if drop(c, asked) {
			gone = append(gone, c)
			delete(m.kept, c)
		}
	}
	return gone
}
