package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Want names a commit to be had.
type Want struct {
	// Commit is a full object id, or the first 7 or more characters of one. An annotated tag's id leads to its commit.
	Commit string
	// Ref is the full name of the ref that Commit was found at, or HEAD; empty when it was given as a commit. It makes
	// fetching cheap and works with servers that give out no single commits.
	Ref string
}

// Ensure makes the commit readable, fetching what is missing, keeps it, and returns its full id. Calls for the same commit
// share one fetch. The server is asked at least once whether it accepts these credentials.
func (s *Store) Ensure(ctx context.Context, r Repo, w Want) (string, error) {
	a, err := s.locate(r.URL)
	if err != nil {
		return "", err
	}
	w.Commit = strings.ToLower(w.Commit)
	switch {
	case len(w.Commit) < 7 || !hexOnly(w.Commit) || len(w.Commit) > 64:
		return "", &Error{Repo: a.remote, Kind: ErrRefused, What: fmt.Sprintf("%q is no commit id of 7 or more characters", w.Commit)}
	case w.Ref != "" && !validRef(w.Ref):
		return "", &Error{Repo: a.remote, Kind: ErrRefused, What: fmt.Sprintf("%q is no valid name of a ref", w.Ref)}
	}
	m, id := s.mirror(a.key()), s.proofs.of(r)
	if s.proofs.has(id) {
		if commit, ok := m.has(w.Commit, s.opt.Now()); ok {
			return commit, nil
		}
	}
	return fly(ctx, s, "ensure "+string(id[:])+w.Commit+" "+w.Ref, func(ctx context.Context) (string, error) {
		return s.ensure(ctx, &fetch{s: s, m: m, r: r, a: a, want: w})
	})
}

// fetch is one Ensure that found nothing ready.
type fetch struct {
	s    *Store
	m    *mirror
	r    Repo
	a    address
	n    *session
	want Want
}

func (s *Store) ensure(ctx context.Context, f *fetch) (string, error) {
	n, err := s.newSession(f.a, f.r.Credentials)
	if err != nil {
		return "", err
	}
	defer n.close()
	f.n = n
	if !s.proofs.has(s.proofs.of(f.r)) {
		if _, err := s.Refs(ctx, f.r); err != nil {
			return "", err
		}
	}
	if err := f.m.lock(ctx); err != nil {
		return "", err
	}
	defer f.m.unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, s.opt.FetchTimeout, errTimeout)
	defer cancel()
	commit, err := f.attempt(ctx)
	if errors.Is(err, ErrCorrupt) {
		// What is left of the mirror is more than nothing as long as the server can not be reached.
		if _, err := s.Refs(ctx, f.r); err != nil {
			return "", err
		}
		_, number := f.m.at()
		if err := s.replace(ctx, f.m, number, len(f.want.Commit)); err != nil {
			return "", n.explain(err)
		}
		commit, err = f.attempt(ctx)
	}
	return commit, err
}

// attempt opens the mirror and gets the commit. Every error is a sentence.
func (f *fetch) attempt(ctx context.Context) (string, error) {
	start := f.s.opt.Now()
	err := f.s.open(ctx, f.m, len(f.want.Commit))
	var commit string
	if err == nil {
		commit, err = f.get(ctx)
	}
	if err == nil {
		f.s.opt.Log.Debug("commit is there", "component", "git", "repository", f.m.key, "commit", commit,
			"took", f.s.opt.Now().Sub(start).Round(time.Millisecond))
		return commit, nil
	}
	if dir, number := f.m.at(); number > 0 {
		removeLocks(dir)
	}
	var told *Error
	if errors.As(err, &told) {
		return "", told
	}
	e := f.n.explain(err)
	if errors.Is(err, ErrCorrupt) {
		e.Kind, e.What = ErrCorrupt, "the mirror is damaged"
	}
	return "", e
}

// get tries the cheapest way first.
func (f *fetch) get(ctx context.Context) (string, error) {
	if commit, ok := f.m.has(f.want.Commit, f.s.opt.Now()); ok {
		return commit, nil
	}
	if !fullHash(f.want.Commit) {
		return f.short(ctx)
	}
	if ok, err := f.complete(ctx); err != nil || ok {
		return f.hold(ctx, err)
	}
	if f.want.Ref != "" {
		ok, err := f.byRef(ctx)
		if ok {
			return f.hold(ctx, err)
		}
		if err != nil && !unknownRevision(err) {
			return "", err
		}
	}
	_, err := f.git(ctx, "--no-write-fetch-head", f.want.Commit)
	if err == nil {
		return f.hold(ctx, nil)
	}
	if !unknownRevision(err) {
		return "", err
	}
	if err := f.all(ctx); err != nil {
		return "", err
	}
	ok, err := f.complete(ctx)
	if err == nil && !ok {
		return "", f.unknown("there is no commit " + f.want.Commit)
	}
	return f.hold(ctx, err)
}

func unknownRevision(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.cause == nil && classify(f.stderr).is(ErrUnknownRevision)
}

func (f *fetch) unknown(what string) error {
	return &Error{Repo: f.a.remote, Kind: ErrUnknownRevision, What: what}
}

// git fetches one refspec or several.
func (f *fetch) git(ctx context.Context, args ...string) ([]byte, error) {
	all := []string{"fetch", "--quiet", "--no-tags", "--force", "--no-show-forced-updates"}
	if f.r.Depth > 0 {
		all = append(all, "--depth="+strconv.Itoa(f.r.Depth))
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		all, args = append(all, args[0]), args[1:]
	}
	dir, _ := f.m.at()
	return f.n.remote(ctx, f.s, dir, append(append(all, "--end-of-options", f.a.remote), args...)...)
}

// byRef fetches the ref and tells whether the commit came with it: the ref may have moved since it was looked at. What
// a fetch that ended well has brought is complete, so the commit needs no other proof than to be reachable.
func (f *fetch) byRef(ctx context.Context) (bool, error) {
	dir, _ := f.m.at()
	head := filepath.Join(dir, "FETCH_HEAD")
	if err := os.Remove(head); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if _, err := f.git(ctx, f.want.Ref); err != nil {
		return false, err
	}
	line, err := os.ReadFile(head)
	if err != nil {
		return false, err
	}
	tip, _, _ := strings.Cut(string(line), "\t")
	if tip == f.want.Commit {
		return true, nil
	}
	if _, err := f.info(ctx, f.want.Commit); err != nil {
		if errors.Is(err, errMissing) {
			err = nil
		}
		return false, err
	}
	_, err = f.s.local(ctx, dir, "merge-base", "--is-ancestor", "--end-of-options", f.want.Commit, tip)
	var no *failure
	if errors.As(err, &no) && no.exit == 1 {
		return false, nil
	}
	return err == nil, err
}

// all fetches every branch and tag.
func (f *fetch) all(ctx context.Context) error {
	_, err := f.git(ctx, "--prune", "--no-write-fetch-head",
		"+refs/heads/*:"+allRefs+"heads/*", "+refs/tags/*:"+allRefs+"tags/*")
	return err
}

// complete tells whether the commit is in the mirror with all that it needs. An object alone proves nothing: a fetch that
// was killed leaves some.
func (f *fetch) complete(ctx context.Context) (bool, error) {
	if _, err := f.info(ctx, f.want.Commit); err != nil {
		if errors.Is(err, errMissing) {
			err = nil
		}
		return false, err
	}
	dir, _ := f.m.at()
	_, err := f.s.local(ctx, dir, "rev-list", "--objects", "--quiet", f.want.Commit, "--not", "--glob="+keepRefs+"*")
	var no *failure
	if errors.As(err, &no) && no.cause == nil {
		return false, nil
	}
	return err == nil, err
}

func (f *fetch) info(ctx context.Context, id string) (header, error) {
	dir, _ := f.m.at()
	var h header
	err := f.s.readers.do(ctx, dir, func(r *reader) (err error) {
		h, err = r.info(id)
		return err
	})
	return h, err
}
