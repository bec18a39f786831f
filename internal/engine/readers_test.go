package engine

import (
	"slices"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// readerFor is the reader of an application with one source at c0, which read a folder and a file of its own and a shared one.
func readerFor(name string, answers job.Answers) *reader {
	app := &v1alpha1.Application{}
	app.Name = name
	app.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: "https://x/y", Path: "apps/" + name}
	r := &rendering{resolved: []string{"c0"}, revisions: []string{"c0"}, parts: []part{{
		Own: tree.Reads{
			{Op: tree.ReadKind, Path: "apps"}, {Op: tree.ReadKind, Path: "apps/" + name}, {Op: tree.ReadNames, Path: "apps/" + name},
			{Op: tree.ReadContent, Path: "apps/" + name + "/a.yaml"}, {Op: tree.ReadContent, Path: "base/cm.yaml"},
		},
		Answers: answers,
	}}}
	return readerOf(app, name, func(located) string { return "repo" }, r)
}

func TestReadersAdvance(t *testing.T) {
	r := newReaders()
	r.set("a", readerFor("a", nil))
	r.set("b", readerFor("b", nil))
	r.set("rev", readerFor("rev", job.Answers{"env ARGOCD_APP_REVISION_SHORT": "x"}))
	all := []string{"a", "b", "rev", "unknown"}
	at := "c0"
	next := func(to string, apps []string, changes ...tree.Change) []string {
		got := r.advance(step{repo: "repo", from: at, to: to, full: to + "full", changes: changes}, apps)
		slices.Sort(got)
		at = to
		return got
	}
	if got := next("c1", all, tree.Change{Path: "docs/x"}); !slices.Equal(got, []string{"rev", "unknown"}) {
		t.Errorf("a file that nobody read: %v", got)
	}
	if r.holds("a", "repo", "c0", "c1") != "c1full" || r.holds("rev", "repo", "c0", "c1") != "" || r.holds("a", "repo", "c0", "c2") != "" {
		t.Error("what holds at the new commit is not known rightly")
	}
	if got := r.revisions("a"); !slices.Equal(got, []string{"c1full"}) {
		t.Errorf("a at %v", got)
	}
	if got := next("c2", []string{"a", "b"}, tree.Change{Path: "apps/b/new.yaml", Kind: true}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a new file: %v", got)
	}
	if got := next("c3", []string{"a", "b"}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("b was left at c1, so nothing is known of it: %v", got)
	}
	if got := next("c4", []string{"a"}, tree.Change{Path: "base/cm.yaml"}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a shared file: %v", got)
	}
	if got := r.advance(step{repo: "other", from: "c3", to: "c4"}, []string{"a"}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("another repository: %v", got)
	}
	for _, app := range all {
		r.set(app, nil)
	}
	if len(r.byApp)+len(r.byRepo) != 0 {
		t.Errorf("%d applications and %d repositories stay", len(r.byApp), len(r.byRepo))
	}
}

// TestReadersOfOneRepositoryTwice: an application that reads a repository at two commits is concerned by what either reads.
func TestReadersOfOneRepositoryTwice(t *testing.T) {
	app := &v1alpha1.Application{}
	app.Spec.Sources = []v1alpha1.ApplicationSource{{RepoURL: "r", TargetRevision: "main", Ref: "values"}, {RepoURL: "r", TargetRevision: "v1", Path: "p"}}
	r := &rendering{resolved: []string{"m0", "v0"}, revisions: []string{"m0", "v0"}, parts: []part{{}, {
		Own: tree.Reads{{Op: tree.ReadContent, Path: "p/x"}}, Refs: map[string]tree.Reads{"values": {{Op: tree.ReadContent, Path: "values.yaml"}}},
	}}}
	for _, c := range []struct {
		from, path string
		want       bool
	}{
		{"m0", "p/x", false},
		{"m0", "values.yaml", true},
		{"v0", "values.yaml", false},
		{"v0", "p/x", true},
	} {
		all := newReaders()
		all.set("a", readerOf(app, "a", func(located) string { return "r" }, r))
		got := all.advance(step{repo: "r", from: c.from, to: "next", full: "next", changes: []tree.Change{{Path: c.path}}}, []string{"a"})
		if (len(got) > 0) != c.want {
			t.Errorf("%s at %s: concerned %v", c.path, c.from, got)
		}
	}
}

func TestReadersAsked(t *testing.T) {
	r := newReaders()
	r.set("asks", readerFor("asks", job.Answers{"api x/v1": "no"}))
	r.set("version", readerFor("version", job.Answers{"version": "v1"}))
	r.set("name", readerFor("name", job.Answers{"env ARGOCD_APP_NAME": "x"}))
	r.set("none", readerFor("none", nil))
	if got := r.asked(job.Capabilities{KubeVersion: "v1"}); len(got) != 0 {
		t.Errorf("nothing changed: %v", got)
	}
	if got := r.asked(job.Capabilities{KubeVersion: "v1", APIVersions: []string{"x/v1", "y/v1"}}); !slices.Equal(got, []string{"asks"}) {
		t.Errorf("a new API: %v", got)
	}
	if got := r.asked(job.Capabilities{KubeVersion: "v2"}); !slices.Equal(got, []string{"version"}) {
		t.Errorf("a new version: %v", got)
	}
}

func TestOutdatedTakeTurns(t *testing.T) {
	o := newOutdated()
	if !o.add("a") || o.add("b") || o.add("c") || o.add("b") || o.add("a") {
		t.Fatal("not one at a time")
	}
	if !o.turn("a") || o.turn("b") || o.done("c") != "" || o.done("a") != "b" || !o.turn("b") {
		t.Error("the turns are not in order")
	}
	if o.done("b") != "" || o.turn("c") || !o.add("d") {
		t.Error("who has left the line has a turn")
	}
}
