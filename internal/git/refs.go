package git

import (
	"bytes"
	"context"
	"strings"
)

// Refs is what a remote advertises. Its fields are those of resolve.Refs, so that one converts to the other.
type Refs struct {
	// Head is the commit of HEAD and HeadRef the full name of the branch it stands for; empty in an empty repository.
	Head, HeadRef string
	// Branches and Tags by short name, as the commit they lead to: an annotated tag is peeled.
	Branches, Tags map[string]string
	// Other refs by full name, peeled as well.
	Other map[string]string
}

// Refs asks the remote what it has: one ls-remote, shared by all who ask at the same time with the same credentials.
func (s *Store) Refs(ctx context.Context, r Repo) (Refs, error) {
	a, err := s.locate(r.URL)
	if err != nil {
		return Refs{}, err
	}
	id := s.proofs.of(r)
	return fly(ctx, s, "refs "+string(id[:]), func(ctx context.Context) (Refs, error) {
		return s.lsRemote(ctx, r, a)
	})
}

func (s *Store) lsRemote(ctx context.Context, r Repo, a address) (Refs, error) {
	n, err := s.newSession(a, r.Credentials)
	if err != nil {
		return Refs{}, err
	}
	defer n.close()
	ctx, cancel := context.WithTimeoutCause(ctx, s.opt.RefsTimeout, errTimeout)
	defer cancel()
	out, err := n.remote(ctx, s, "", "ls-remote", "--quiet", "--symref", "--end-of-options", a.remote)
	if err != nil {
		e := n.explain(err)
		if isAny(e, ErrAuth, ErrNotFound) {
			s.proofs.set(s.proofs.of(r), false)
		}
		return Refs{}, e
	}
	s.proofs.set(s.proofs.of(r), true)
	return parseRefs(out), nil
}

// parseRefs reads the output of ls-remote --symref. A line that is none is passed over.
func parseRefs(out []byte) Refs {
	refs := Refs{Branches: map[string]string{}, Tags: map[string]string{}, Other: map[string]string{}}
	for line := range bytes.Lines(out) {
		left, name, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), "\t")
		if !ok {
			continue
		}
		if target, ok := strings.CutPrefix(left, "ref: "); ok {
			if name == "HEAD" {
				refs.HeadRef = target
			}
			continue
		}
		if fullHash(left) {
			refs.add(strings.TrimSuffix(name, "^{}"), left)
		}
	}
	return refs
}

// add enters one ref; the peeled line of a tag follows the tag's own and takes its place.
func (r *Refs) add(name, hash string) {
	if name == "HEAD" {
		r.Head = hash
		return
	}
	if short, ok := strings.CutPrefix(name, "refs/heads/"); ok {
		r.Branches[short] = hash
		return
	}
	if short, ok := strings.CutPrefix(name, "refs/tags/"); ok {
		r.Tags[short] = hash
		return
	}
	r.Other[name] = hash
}

func hexOnly(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') }) < 0
}

// fullHash tells whether s is an object id: SHA-1 or SHA-256, lower case.
func fullHash(s string) bool { return (len(s) == 40 || len(s) == 64) && hexOnly(s) }

// validRef tells whether git may be given the name: a full ref or HEAD, nothing that a refspec reads differently.
func validRef(name string) bool {
	if name == "HEAD" {
		return true
	}
	return strings.HasPrefix(name, "refs/") && !strings.HasSuffix(name, "/") && !strings.HasSuffix(name, ".lock") &&
		!strings.Contains(name, "..") && !strings.Contains(name, "@{") && !strings.Contains(name, "//") &&
		strings.IndexFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`:?*[\^~`, c) }) < 0
}
