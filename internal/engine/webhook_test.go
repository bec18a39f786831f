package engine_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/webhook"
)

// slowly starts the engine anew so that no repository is asked for changes by itself.
func (w *world) slowly() {
	w.t.Helper()
	w.restart(false, func(o *engine.Options) { o.PollInterval = time.Hour })
}

// announce sends a signed event as GitHub would; it answers how many sources it concerns.
func (w *world) announce(kind string, body map[string]any) int {
	w.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte("hush"))
	_, _ = mac.Write(data) // a hash takes every write
	header := http.Header{}
	header.Set("X-GitHub-Event", kind)
	header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	event, err := webhook.Parse(webhook.Request{Header: header, Body: data}, webhook.Secrets{"webhook.github.secret": "hush"})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.engine.Push(event)
}

// pushed is the push event of a ref of a repository by one form of its URL.
func pushed(form, ref string) map[string]any {
	return map[string]any{"ref": ref, "repository": map[string]any{"clone_url": form, "default_branch": "main"}}
}

// C055: branches with a slash, full names of refs, every form of the URL, and a branch that did not exist.
func TestC055PushesOfBranches(t *testing.T) {
	w := newWorld(t)
	w.slowly()
	r := w.repo("team", map[string]string{"cm.yaml": configMap("x", "1")})
	first, err := r.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	for _, branch := range []string{"env/b2b", "b2b"} {
		if err := r.SetBranch(branch, first); err != nil {
			t.Fatal(err)
		}
	}
	apps := map[string]string{"short": "env/b2b", "full": "refs/heads/env/b2b", "other": "b2b", "head": "HEAD", "later": "later/x"}
	for name, target := range apps {
		w.app(name, v1alpha1.ApplicationSource{
			RepoURL: r.URL(), Path: ".", TargetRevision: target, Directory: &v1alpha1.ApplicationSourceDirectory{Include: "cm.yaml"},
		}, func(a *v1alpha1.Application) { a.Spec.SyncPolicy.Automated = nil })
	}
	at := func(name, commit string) {
		t.Helper()
		w.until(name+" is at "+commit, func() (string, bool) { got := w.get(name).Status.Sync.Revision; return got, got == commit })
	}
	for _, name := range []string{"short", "full", "other", "head"} {
		at(name, first)
	}
	w.condition("later", v1alpha1.ConditionComparisonError, "later/x")
	looked := map[string]*v1alpha1.Application{"other": w.get("other"), "head": w.get("head")}

	address := strings.TrimPrefix(r.URL(), "http://")
	host, path, _ := strings.Cut(address, "/")
	host, _, _ = strings.Cut(host, ":")
	for i, form := range []string{
		"https://" + strings.ToUpper(host) + "/" + path, "git@" + host + ":" + path, "https://" + host + "/" + strings.TrimSuffix(strings.ToUpper(path), ".GIT"),
	} {
		commit, err := r.CommitTo("env/b2b", map[string]string{"cm.yaml": configMap("x", fmt.Sprint(i))}, "change")
		if err != nil {
			t.Fatal(err)
		}
		if n := w.announce("push", pushed(form, "refs/heads/env/b2b")); n != 2 {
			t.Errorf("%s: the event concerns %d sources, want 2", form, n)
		}
		at("short", commit)
		at("full", commit)
	}
	for name, before := range looked {
		if now := w.get(name); now.Status.ReconciledAt.Time != before.Status.ReconciledAt.Time || now.Status.Sync.Revision != first {
			t.Errorf("%s was looked at again although its branch did not move", name)
		}
	}
	if err := r.SetBranch("later/x", first); err != nil {
		t.Fatal(err)
	}
	if n := w.announce("push", pushed(r.URL(), "refs/heads/later/x")); n != 1 {
		t.Errorf("the new branch concerns %d sources, want 1", n)
	}
	at("later", first)
}

// A repository that was renamed is pushed to under its new name, while applications still name the old one, which the
// forge redirects.
func TestPushToARenamedRepository(t *testing.T) {
	w := newWorld(t)
	w.slowly()
	r := w.repo("before", map[string]string{"cm.yaml": configMap("x", "1")})
	first, err := r.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	w.app("a", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "."})
	w.settled("a", first)
	renamed := strings.Replace(r.URL(), "before", "after", 1)
	if n := w.announce("push", pushed(renamed, "refs/heads/main")); n != 0 {
		t.Errorf("a repository that nobody follows concerns %d sources", n)
	}
	w.announce("repository", map[string]any{
		"action": "renamed", "repository": map[string]any{"clone_url": renamed},
		"changes": map[string]any{"repository": map[string]any{"name": map[string]any{"from": "before"}}},
	})
	second := w.commit(r, map[string]string{"cm.yaml": configMap("x", "2")})
	if n := w.announce("push", pushed(renamed, "refs/heads/main")); n != 1 {
		t.Errorf("the push under the new name concerns %d sources, want 1", n)
	}
	w.settled("a", second)
}

// C033: annotated, light and full tags lead to the commit, in one source and in several, and the build environment says the
// same; a tag that was moved is seen at the next refresh.
func TestC033AnnotatedTags(t *testing.T) {
	w := newWorld(t)
	w.slowly()
	chart := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: tagged\nversion: 0.1.0\n", "values.yaml": "rev: none\nname: none\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Values.name }}\"}\ndata: {rev: \"{{ .Values.rev }}\", k: \"1\"}\n",
	}
	r := w.repo("tags", chart)
	c1, err := r.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	object, err := r.AnnotatedTag("v1", c1, "x")
	if err != nil || object == c1 {
		t.Fatalf("the annotated tag is %s, %v", object, err)
	}
	if err := r.Tag("light", c1); err != nil {
		t.Fatal(err)
	}
	source := func(target, name string) v1alpha1.ApplicationSource {
		return v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: ".", TargetRevision: target, Helm: &v1alpha1.ApplicationSourceHelm{
			Parameters: []v1alpha1.HelmParameter{{Name: "rev", Value: "$ARGOCD_APP_REVISION"}, {Name: "name", Value: name}},
		}}
	}
	for name, target := range map[string]string{"annotated": "v1", "light": "light", "full": "refs/tags/v1"} {
		w.app(name, source(target, name))
	}
	w.app("several", source("v1", "unused"), func(a *v1alpha1.Application) {
		a.Spec.Source, a.Spec.Sources = nil, []v1alpha1.ApplicationSource{source("v1", "several-a"), source("v1", "several-b")}
	})
	at := func(commit string, names ...string) {
		t.Helper()
		for _, name := range names {
			w.until(name+" is at "+commit, func() (string, bool) {
				s := w.get(name).Status.Sync
				got := append([]string{s.Revision}, s.Revisions...)
				if name == "several" {
					return fmt.Sprint(got, s.Status), s.Status == "Synced" && fmt.Sprint(s.Revisions) == fmt.Sprint([]string{commit, commit})
				}
				return fmt.Sprint(got, s.Status), s.Status == "Synced" && s.Revision == commit
			})
		}
	}
	live := func(commit string, objects ...string) {
		t.Helper()
		for _, o := range objects {
			if data, _ := w.configMap(o); data["rev"] != commit {
				t.Errorf("%s was rendered with the revision %q, want %s", o, data["rev"], commit)
			}
		}
	}
	at(c1, "annotated", "light", "full", "several")
	live(c1, "annotated", "light", "full", "several-a", "several-b")

	c2 := w.commit(r, map[string]string{"templates/cm.yaml": chart["templates/cm.yaml"] + "# moved\n"})
	if _, err := r.AnnotatedTag("v1", c2, "y"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"annotated", "full", "several"} {
		w.refresh(name, "normal")
	}
	at(c2, "annotated", "full", "several")
	live(c2, "annotated", "full", "several-a", "several-b")
	w.refresh("light", "normal")
	at(c1, "light")
}
