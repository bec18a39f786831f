// Package resolve owns the answer to "which commit, which version": it turns a targetRevision and what a remote
// advertises into a commit, and a version constraint and a list into a version.
//
// It is pure: no I/O, no clock, and it imports nothing of ours. What only the object store can tell is returned as a
// question (Commit, Short).
package resolve

import (
	"errors"
	"fmt"
	"strings"
)

// Refs is what a Git remote advertises; git.Refs converts to it.
type Refs struct {
	// Head is the commit of HEAD and HeadRef the full name of the branch it stands for; empty in an empty repository.
	Head, HeadRef string
	// Branches and Tags by short name, as the commit they lead to (annotated tags peeled).
	Branches, Tags map[string]string
	// Other refs by full name.
	Other map[string]string
}

// How tells what a target revision was.
type How string

// The ways that a target revision leads to a commit.
const (
	Head   How = "HEAD"
	Branch How = "branch"
	Tag    How = "tag"
	Ref    How = "ref"
	// Range is the highest tag that a semver constraint allows.
	Range How = "range"
	// Commit is a full commit id that no ref names: the store must find out whether it exists.
	Commit How = "commit"
	// Short is the start of a commit id: the store must find the whole.
	Short How = "short"
)

// Revision is a target revision resolved.
type Revision struct {
	// Commit id; for Short its first characters.
	Commit string
	// Ref is the full name of the ref that led to it, empty for Commit and Short.
	Ref string
	How How
}

// ErrUnknown says that nothing has this name. It may appear later, so the repository is worth another look.
var ErrUnknown = errors.New("unknown revision")

// unknown is an ErrUnknown whose text is the whole sentence.
type unknown struct{ text string }

func (u unknown) Error() string { return u.text }
func (u unknown) Unwrap() error { return ErrUnknown }

// Git resolves a targetRevision. The order, which is the answer for names that mean several things:
//
//  1. empty or HEAD: the default branch;
//  2. with a tagPrefix: the tag prefix+target, then the highest tag with the prefix whose rest the semver constraint
//     target allows; what is no version and no constraint goes on to 3;
//  3. a full name refs/…, also written heads/… or tags/… when nothing shorter has that name;
//  4. a branch, before a tag of the same name: the branch moves, and people who name it want that;
//  5. a tag;
//  6. a full commit id;
//  7. a semver constraint over all tags, so that a branch named 1.x stays a branch;
//  8. the first 7 or more characters of a commit id.
func Git(refs Refs, target, tagPrefix string) (Revision, error) {
	target = strings.TrimSpace(target)
	if target == "" || target == "HEAD" {
		return head(refs)
	}
	constraint, isRange := parseConstraint(target)
	// A lone x is a constraint for the library, and a branch for everybody else.
	isRange = isRange && strings.ContainsAny(target, "0123456789*")
	if tagPrefix != "" && isRange {
		return prefixed(refs, target, tagPrefix, constraint)
	}
	if rev, ok := named(refs, target); ok {
		return rev, nil
	}
	if id := strings.ToLower(target); isHex(id) && (len(id) == 40 || len(id) == 64) {
		return Revision{Commit: id, How: Commit}, nil
	}
	if strings.HasPrefix(target, "refs/") {
		return Revision{}, missing(refs, target)
	}
	// 1234567 is a version too, but nobody means one by it.
	short := isHex(strings.ToLower(target)) && len(target) >= 7 && len(target) < 40
	if isRange && !short {
		if name, ok := highest(keys(refs.Tags), constraint); ok {
			return Revision{Commit: refs.Tags[name], Ref: "refs/tags/" + name, How: Range}, nil
		}
		return Revision{}, noTag(refs, target, "")
	}
	if short {
		return Revision{Commit: strings.ToLower(target), How: Short}, nil
	}
	return Revision{}, missing(refs, target)
}

func head(refs Refs) (Revision, error) {
	if refs.Head != "" {
		ref := refs.HeadRef
		if ref == "" {
			ref = "HEAD" // detached: there is no branch to fetch
		}
		return Revision{Commit: refs.Head, Ref: ref, How: Head}, nil
	}
	if len(refs.Branches)+len(refs.Tags)+len(refs.Other) == 0 {
		return Revision{}, unknown{"the repository is empty: it has no commit yet"}
	}
	return Revision{}, unknown{"HEAD leads to a branch that does not exist; name a branch, tag or commit"}
}

func prefixed(refs Refs, target, prefix string, c constraint) (Revision, error) {
	if id, ok := refs.Tags[prefix+target]; ok {
		return Revision{Commit: id, Ref: "refs/tags/" + prefix + target, How: Tag}, nil
	}
	var rests []string
	for name := range refs.Tags {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			rests = append(rests, rest)
		}
	}
	rest, ok := highest(rests, c)
	if !ok {
		return Revision{}, noTag(refs, target, prefix)
	}
	return Revision{Commit: refs.Tags[prefix+rest], Ref: "refs/tags/" + prefix + rest, How: Range}, nil
}

// named looks target up as a name.
func named(refs Refs, target string) (Revision, bool) {
	lookup := func(name string, how How) (Revision, bool) {
		var id string
		switch {
		case strings.HasPrefix(name, "refs/heads/"):
			id = refs.Branches[strings.TrimPrefix(name, "refs/heads/")]
		case strings.HasPrefix(name, "refs/tags/"):
			id = refs.Tags[strings.TrimPrefix(name, "refs/tags/")]
		default:
			id = refs.Other[name]
		}
		return Revision{Commit: id, Ref: name, How: how}, id != ""
	}
	if strings.HasPrefix(target, "refs/") {
		how := Ref
		if strings.HasPrefix(target, "refs/heads/") {
			how = Branch
		} else if strings.HasPrefix(target, "refs/tags/") {
			how = Tag
		}
		return lookup(target, how)
	}
	for _, try := range []struct {
		name string
		how  How
	}{{"refs/heads/" + target, Branch}, {"refs/tags/" + target, Tag}, {"refs/" + target, Ref}} {
		if rev, ok := lookup(try.name, try.how); ok {
			return rev, true
		}
	}
	return Revision{}, false
}

func missing(refs Refs, target string) error {
	what := "no branch, tag or commit '" + target + "'"
	names := append(keys(refs.Branches), keys(refs.Tags)...)
	if strings.HasPrefix(target, "refs/") {
		what = "no ref '" + target + "'"
		for i, n := range names {
			full := "refs/heads/"
			if i >= len(refs.Branches) {
				full = "refs/tags/"
			}
			names[i] = full + n
		}
		names = append(names, keys(refs.Other)...)
	}
	return unknown{what + suggest(target, names)}
}

func noTag(refs Refs, target, prefix string) error {
	tags := make([]string, 0, len(refs.Tags))
	for name := range refs.Tags {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			tags = append(tags, rest)
		}
	}
	where := ""
	if prefix != "" {
		where = " with the prefix '" + prefix + "'"
	}
	if top, ok := highestAny(tags); ok {
		return unknown{fmt.Sprintf("no tag%s is a version that '%s' allows; the highest is '%s%s'", where, target, prefix, top)}
	}
	return unknown{fmt.Sprintf("no tag%s is a version that '%s' allows; there is no version tag at all", where, target)}
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

func keys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}
