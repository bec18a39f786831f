package engine_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// TestBadSources: one clear sentence each, with the repository and what to look at; other applications go on.
func TestBadSources(t *testing.T) {
	w := newWorld(t)
	r := w.repo("good", map[string]string{
		"app/a.yaml":                 configMap("a", "1"),
		"app/file":                   "x",
		"broken/Chart.yaml":          "apiVersion: v2\nname: broken\nversion: 0.1.0\n",
		"broken/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.a.b.c }}\n",
		"nodep/Chart.yaml":           "apiVersion: v2\nname: nodep\nversion: 0.1.0\ndependencies: [{name: sub, version: 1.0.0, repository: \"file://../sub\"}]\n",
		"overlay/kustomization.yaml": "resources: [../base]\n",
		"twice/one.yaml":             configMap("same", "1"),
		"twice/two.yaml":             configMap("same", "2"),
	})
	const comparison, invalid = v1alpha1.ConditionComparisonError, v1alpha1.ConditionInvalidSpecError
	url := r.URL()
	for name, c := range map[string]struct {
		source v1alpha1.ApplicationSource
		typ    v1alpha1.ApplicationConditionType
		parts  []string
	}{
		"unknown-repo":     {v1alpha1.ApplicationSource{RepoURL: w.git.URL("none"), Path: "app"}, comparison, []string{w.git.URL("none"), "no such repository"}},
		"unreachable":      {v1alpha1.ApplicationSource{RepoURL: "http://127.0.0.1:1/x.git", Path: "app"}, comparison, []string{"http://127.0.0.1:1/x.git", "can not be reached"}},
		"unknown-revision": {v1alpha1.ApplicationSource{RepoURL: url, Path: "app", TargetRevision: "mian"}, comparison, []string{url, "mian", "main"}},
		"missing-path":     {v1alpha1.ApplicationSource{RepoURL: url, Path: "apps"}, comparison, []string{url, "apps"}},
		"path-is-file":     {v1alpha1.ApplicationSource{RepoURL: url, Path: "app/file"}, comparison, []string{url, "app/file", "file"}},
		"climbing-path":    {v1alpha1.ApplicationSource{RepoURL: url, Path: "../x"}, invalid, []string{"spec.source.path", "../x", "out of the source"}},
		"template-error":   {v1alpha1.ApplicationSource{RepoURL: url, Path: "broken"}, comparison, []string{url, "templates/cm.yaml:4"}},
		"no-dependency":    {v1alpha1.ApplicationSource{RepoURL: url, Path: "nodep"}, comparison, []string{url, "sub"}},
		"no-base":          {v1alpha1.ApplicationSource{RepoURL: url, Path: "overlay"}, comparison, []string{url, "base"}},
		"no-path":          {v1alpha1.ApplicationSource{RepoURL: url}, invalid, []string{"spec.source", "path"}},
		"local-file":       {v1alpha1.ApplicationSource{RepoURL: "file:///etc", Path: "."}, comparison, []string{"file:///etc"}},
		"program":          {v1alpha1.ApplicationSource{RepoURL: "ext::sh -c id", Path: "."}, invalid, []string{"spec.source.repoURL"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			w.app(name, c.source)
			t.Log(w.condition(name, c.typ, c.parts...))
			if s := w.get(name).Status.Sync.Status; s != v1alpha1.SyncUnknown {
				t.Errorf("sync status %s", s)
			}
		})
	}
	w.app("twice", v1alpha1.ApplicationSource{RepoURL: url, Path: "twice"})
	t.Log(w.condition("twice", v1alpha1.ConditionRepeatedResourceWarning, "twice/one.yaml:1", "twice/two.yaml:1", "ConfigMap"))
	w.app("fine", v1alpha1.ApplicationSource{RepoURL: url, Path: "app"})
	w.settled("fine", "")
}

func TestSourceComesBack(t *testing.T) {
	w := newWorld(t)
	r := w.repo("away", map[string]string{"app/a.yaml": configMap("a", "1")})
	w.app("away", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("away", "")
	if err := w.git.Pause(); err != nil {
		t.Fatal(err)
	}
	w.condition("away", v1alpha1.ConditionComparisonError, r.URL())
	if _, there := w.configMap("a"); !there {
		t.Fatal("a server that is away deleted something")
	}
	if err := w.git.Resume(); err != nil {
		t.Fatal(err)
	}
	sha := w.commit(r, map[string]string{"app/a.yaml": configMap("a", "2")})
	w.settled("away", sha)
	if c := w.get("away").Status.Conditions; len(c) != 0 {
		t.Errorf("conditions stay: %v", c)
	}
	// A repository that is deleted for good: the same, nothing is touched.
	w.git.Break(gitserver.Fault{Status: 500})
	w.condition("away", v1alpha1.ConditionComparisonError, r.URL())
	w.git.Break(gitserver.Fault{})
	w.settled("away", sha)
}
