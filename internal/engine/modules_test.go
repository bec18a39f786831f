package engine_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// A submodule is rendered where the project allows its URL; the rule is an input, whichever way it changes.
func TestSubmodulesOfAProject(t *testing.T) {
	w := newWorld(t)
	lib := w.repo("team/lib", map[string]string{"a.yaml": configMap("a", "1")})
	pinned, err := lib.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	r := w.repo("team/app", map[string]string{
		".gitmodules": "[submodule \"lib\"]\n\tpath = app/lib\n\turl = ../lib.git\n", "app/lib": gitserver.Submodule + pinned,
	})
	w.project("narrow", map[string]any{"sourceRepos": []any{r.URL()}})
	w.app("m", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app", Directory: &v1alpha1.ApplicationSourceDirectory{Recurse: true}},
		func(a *v1alpha1.Application) { a.Spec.Project = "narrow" })
	w.condition("m", v1alpha1.ConditionComparisonError, "submodule app/lib", "not permitted by the project narrow")
	allow := func(sources string) {
		t.Helper()
		patch(w, w.projects(), "narrow", `{"spec":{"sourceRepos":`+sources+`}}`)
	}
	allow(`["*"]`)
	w.settled("m", "")
	if _, there := w.configMap("a"); !there {
		t.Error("the object of the submodule is not there")
	}
	allow(`["` + r.URL() + `"]`)
	w.condition("m", v1alpha1.ConditionComparisonError, "submodule app/lib", "not permitted by the project narrow")
	if _, there := w.configMap("a"); !there {
		t.Error("a rule took an object away")
	}
	allow(`["*"]`) // the audit at the end wants a rendering
	w.settled("m", "")
}

// A submodule that moves renders who reads below it, also where nothing but what is below it was read.
func TestSubmoduleMoves(t *testing.T) {
	w := newWorld(t)
	lib := w.repo("team/lib", map[string]string{"app/a.yaml": configMap("a", "1")})
	pinned, err := lib.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	r := w.repo("team/app", map[string]string{
		".gitmodules": "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib.git\n", "lib": gitserver.Submodule + pinned, "b/b.yaml": configMap("b", "1"),
	})
	w.app("below", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "lib/app"})
	w.app("beside", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "b"})
	w.settled("below", "")
	w.settled("beside", "")
	w.idle()
	w.forgetRenders()
	next := w.commit(lib, map[string]string{"app/a.yaml": configMap("a", "2")})
	sha := w.commit(r, map[string]string{"lib": gitserver.Submodule + next})
	w.settled("below", sha)
	w.settled("beside", sha)
	if data, _ := w.configMap("a"); data["k"] != "2" {
		t.Errorf("a is %v", data)
	}
	w.wantRendered("the submodule moved", "below")
}
