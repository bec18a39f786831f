package resolve_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/resolve"
)

// id makes a commit id that shows where it came from.
func id(c string) string { return strings.Repeat(c, 40) }

func refs() resolve.Refs {
	return resolve.Refs{
		Head: id("a"), HeadRef: "refs/heads/main",
		Branches: map[string]string{
			"main": id("a"), "env/b2b": id("b"), "both": id("c"), "2.x": id("d"), "abcdef1": id("e"), "heads/odd": id("f"),
		},
		Tags: map[string]string{
			"both": id("1"), "v1.0.0": id("2"), "v1.2.0": id("3"), "1.2.0": id("4"), "v2.0.0-rc.1": id("5"), "web-1.4.0": id("6"),
			"web-1.5.0": id("7"), "web-2.0.0-beta": id("8"), "nightly": id("9"), "v0.9": id("0"),
		},
		Other: map[string]string{"refs/pull/7/head": id("a")},
	}
}

func TestGit(t *testing.T) {
	for _, tc := range []struct {
		name, target, prefix string
		want                 resolve.Revision
	}{
		{"empty is HEAD", "", "", resolve.Revision{Commit: id("a"), Ref: "refs/heads/main", How: resolve.Head}},
		{"HEAD", "HEAD", "", resolve.Revision{Commit: id("a"), Ref: "refs/heads/main", How: resolve.Head}},
		{"branch with slash", "env/b2b", "", resolve.Revision{Commit: id("b"), Ref: "refs/heads/env/b2b", How: resolve.Branch}},
		{"full branch", "refs/heads/env/b2b", "", resolve.Revision{Commit: id("b"), Ref: "refs/heads/env/b2b", How: resolve.Branch}},
		{"half a name", "tags/nightly", "", resolve.Revision{Commit: id("9"), Ref: "refs/tags/nightly", How: resolve.Ref}},
		{"branch named heads/odd", "heads/odd", "", resolve.Revision{Commit: id("f"), Ref: "refs/heads/heads/odd", How: resolve.Branch}},
		{"branch before tag", "both", "", resolve.Revision{Commit: id("c"), Ref: "refs/heads/both", How: resolve.Branch}},
		{"tag by full name", "refs/tags/both", "", resolve.Revision{Commit: id("1"), Ref: "refs/tags/both", How: resolve.Tag}},
		{"other ref", "refs/pull/7/head", "", resolve.Revision{Commit: id("a"), Ref: "refs/pull/7/head", How: resolve.Ref}},
		{"full commit", strings.ToUpper(id("e")), "", resolve.Revision{Commit: id("e"), How: resolve.Commit}},
		{"short commit", "1234567", "", resolve.Revision{Commit: "1234567", How: resolve.Short}},
		{"branch that looks like a commit", "abcdef1", "", resolve.Revision{Commit: id("e"), Ref: "refs/heads/abcdef1", How: resolve.Branch}},
		{"branch that looks like a range", "2.x", "", resolve.Revision{Commit: id("d"), Ref: "refs/heads/2.x", How: resolve.Branch}},
		{"range, equal versions", "1.x", "", resolve.Revision{Commit: id("3"), Ref: "refs/tags/v1.2.0", How: resolve.Range}},
		{"range without prereleases", ">=1.0.0", "", resolve.Revision{Commit: id("3"), Ref: "refs/tags/v1.2.0", How: resolve.Range}},
		{"range with prereleases", ">=1.0.0-0", "", resolve.Revision{Commit: id("5"), Ref: "refs/tags/v2.0.0-rc.1", How: resolve.Range}},
		{"range with spaces", ">= 0.1, < 1", "", resolve.Revision{Commit: id("0"), Ref: "refs/tags/v0.9", How: resolve.Range}},
		{"version with another v", "1.0.0", "", resolve.Revision{Commit: id("2"), Ref: "refs/tags/v1.0.0", How: resolve.Range}},
		{"prefix and range", "1.x", "web-", resolve.Revision{Commit: id("7"), Ref: "refs/tags/web-1.5.0", How: resolve.Range}},
		{"prefix before branch", "2.x-0", "web-", resolve.Revision{Commit: id("8"), Ref: "refs/tags/web-2.0.0-beta", How: resolve.Range}},
		{"prefix and version", "1.4.0", "web-", resolve.Revision{Commit: id("6"), Ref: "refs/tags/web-1.4.0", How: resolve.Tag}},
		{"prefix and branch", "main", "web-", resolve.Revision{Commit: id("a"), Ref: "refs/heads/main", How: resolve.Branch}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := resolve.Git(refs(), tc.target, tc.prefix)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGitErrors(t *testing.T) {
	for _, tc := range []struct {
		target, prefix, want string
	}{
		{"mian", "", "no branch, tag or commit 'mian'; did you mean 'main'?"},
		{"b2b", "", "no branch, tag or commit 'b2b'; did you mean 'env/b2b'?"},
		{"nightyl", "", "no branch, tag or commit 'nightyl'; did you mean 'nightly'?"},
		{"quite/another", "", "no branch, tag or commit 'quite/another'"},
		{"x", "", "no branch, tag or commit 'x'"},
		{"refs/heads/mian", "", "no ref 'refs/heads/mian'; did you mean 'refs/heads/main'?"},
		{"refs/pull/8/head", "", "no ref 'refs/pull/8/head'; did you mean 'refs/pull/7/head'?"},
		{"3.x", "", "no tag is a version that '3.x' allows; the highest is 'v2.0.0-rc.1'"},
		{"3.x", "web-", "no tag with the prefix 'web-' is a version that '3.x' allows; the highest is 'web-2.0.0-beta'"},
		{"3.x", "api-", "no tag with the prefix 'api-' is a version that '3.x' allows; there is no version tag at all"},
	} {
		_, err := resolve.Git(refs(), tc.target, tc.prefix)
		if !errors.Is(err, resolve.ErrUnknown) || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", tc.target, err, tc.want)
		}
	}
	for want, r := range map[string]resolve.Refs{
		"the repository is empty: it has no commit yet":                            {},
		"HEAD leads to a branch that does not exist; name a branch, tag or commit": {Branches: map[string]string{"x": id("a")}},
	} {
		if _, err := resolve.Git(r, "", ""); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestGitDetachedHead(t *testing.T) {
	got, err := resolve.Git(resolve.Refs{Head: id("a")}, "HEAD", "")
	if want := (resolve.Revision{Commit: id("a"), Ref: "HEAD", How: resolve.Head}); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestVersion(t *testing.T) {
	charts := []string{"0.9.0", "1.2.0", "v1.10.0", "1.2.1", "2.0.0-rc.1", "latest"}
	for _, tc := range []struct {
		versions         []string
		constraint, want string
	}{
		{charts, "", "v1.10.0"},
		{charts, "*", "v1.10.0"},
		{charts, "1.2.0", "1.2.0"},
		{charts, "v1.2.0", "1.2.0"},
		{charts, "1.10.0", "v1.10.0"},
		{charts, "~1.2.0", "1.2.1"},
		{charts, "^1", "v1.10.0"},
		{charts, "1.2", "1.2.1"},
		{charts, ">0-0", "2.0.0-rc.1"},
		{charts, "2.0.0-rc.1", "2.0.0-rc.1"},
		{charts, "latest", "latest"},
		{[]string{"1.0.0-a", "1.0.0-b"}, "", "1.0.0-b"},
		{[]string{"1.0.0+a", "1.0.0+b"}, "1.x", "1.0.0+b"},
		{[]string{"1.0.0+b", "1.0.0+a"}, "1.0.0+a", "1.0.0+a"},
	} {
		got, err := resolve.Version(tc.versions, tc.constraint)
		if err != nil || got != tc.want {
			t.Errorf("%q of %v: got %q, %v, want %q", tc.constraint, tc.versions, got, err, tc.want)
		}
	}
	for _, tc := range []struct {
		versions         []string
		constraint, want string
	}{
		{nil, "1.x", "there is no version at all"},
		{charts, "3.x", "no version that '3.x' allows; the highest is '2.0.0-rc.1'"},
		{charts, "1.2.7", "no version '1.2.7'; the highest is '2.0.0-rc.1'"},
		{charts, "lates", "no version 'lates'; did you mean 'latest'?"},
		{[]string{"latest"}, "", "none of the 1 versions is a semantic version; name one"},
		{[]string{"latest"}, "1.x", "no version that '1.x' allows; none of the 1 is a semantic version"},
	} {
		if _, err := resolve.Version(tc.versions, tc.constraint); !errors.Is(err, resolve.ErrUnknown) || err.Error() != tc.want {
			t.Errorf("%q: got %v, want %s", tc.constraint, err, tc.want)
		}
	}
}
