package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// impactFiles are those of a repository with applications that share a base, and others.
func impactFiles() map[string]string {
	cm := func(name, value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %q}\n", name, value)
	}
	return map[string]string{
		"base/kustomization.yaml": "resources: [cm.yaml]\n", "base/cm.yaml": cm("base", "1"),
		"one/kustomization.yaml": "resources: [../base]\nnamePrefix: one-\n",
		"two/kustomization.yaml": "resources: [../base]\nnamePrefix: two-\n",
		"plain/a.yaml":           cm("plain", "1"), "plain/gone.yaml": cm("gone", "1"),
		"secret/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pw: before-canary, same: kept-canary}\n",
		"broken/a.yaml": cm("broken", "1"),
	}
}

func applicationText(name, url, path, revision string) string {
	return fmt.Sprintf("---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: %s, namespace: lockstep}\nspec:\n  project: default\n"+
		"  source: {repoURL: %q, path: %s, targetRevision: %s}\n  destination: {server: https://kubernetes.default.svc, namespace: shop}\n", name, url, path, revision)
}

type impactResult struct {
	From, To     string
	Applications []impactedApp
}

type impactedApp struct {
	Name, Error string
	Changes     []struct {
		Object, Action string
		Paths          []string
	}
}

func (r result) impact(t *testing.T) impactResult {
	t.Helper()
	var out impactResult
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatalf("%v in %s %s", err, r.stdout, r.stderr)
	}
	return out
}

func TestImpact(t *testing.T) {
	repo := repository(t, impactFiles())
	from, err := repo.Resolve("main")
	if err == nil {
		err = repo.SetBranch("stable", from)
	}
	if err != nil {
		t.Fatal(err)
	}
	commit := func(files map[string]string) string {
		t.Helper()
		sha, err := repo.Commit(files, "change")
		if err != nil {
			t.Fatal(err)
		}
		return sha
	}
	base := commit(map[string]string{"base/cm.yaml": strings.ReplaceAll(impactFiles()["base/cm.yaml"], `"1"`, `"2"`)})
	plain := commit(map[string]string{"plain/gone.yaml": gitserver.Deleted, "plain/new.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n"})
	secret := commit(map[string]string{"secret/a.yaml": strings.ReplaceAll(impactFiles()["secret/a.yaml"], "before-canary", "after-canary")})
	comment := commit(map[string]string{"plain/a.yaml": impactFiles()["plain/a.yaml"] + "# a comment\n"})
	broken := commit(map[string]string{"broken/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"})
	docs := commit(map[string]string{"README.md": "read me"})

	file := filepath.Join(t.TempDir(), "apps.yaml")
	text := ""
	for _, name := range []string{"one", "two", "plain", "secret", "broken"} {
		text += applicationText(name, repo.URL(), name, "HEAD")
	}
	text += applicationText("stable", repo.URL(), "plain", "stable") + applicationText("other", "https://git.example/other.git", "x", "HEAD") +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: passed-over}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	impact := func(from, to string, more ...string) result {
		return lockstep(append([]string{"impact", "--repo", repo.URL(), "--from", from, "--to", to, "-f", file}, more...)...)
	}
	t.Run("one range", func(t *testing.T) {
		r := impact(broken, docs, "--any-revision", "--exit-code")
		r.want(t, cli.CodeError, "broken", "a.yaml") // it is broken before, too
		if strings.Contains(r.stdout, "ConfigMap") {
			t.Errorf("a file that nobody reads changes something:\n%s", r.stdout)
		}
	})
	t.Run("nobody", func(t *testing.T) { // stable follows the other end
		r := impact(from, from, "--exit-code")
		r.want(t, cli.CodeOK, "changes 0 of 7")
	})
	for name, c := range map[string]struct {
		from, to string
		apps     map[string][]string
	}{
		"base":   {from, base, map[string][]string{"one": {"update ConfigMap/one-base data.k"}, "two": {"update ConfigMap/two-base data.k"}}},
		"plain":  {base, plain, map[string][]string{"plain": {"create ConfigMap/new", "prune ConfigMap/gone"}, "stable": {"create ConfigMap/new", "prune ConfigMap/gone"}}},
		"secret": {plain, secret, map[string][]string{"secret": {"update Secret/s stringData.pw"}}},
		"same":   {secret, comment, map[string][]string{"plain": nil, "stable": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r := impact(c.from, c.to, "--any-revision", "-o", "json")
			r.want(t, cli.CodeOK)
			out := r.impact(t)
			if out.From != c.from || out.To != c.to || len(out.Applications) != len(c.apps) {
				t.Errorf("%+v", out)
			}
			for _, app := range out.Applications {
				var got []string
				for _, ch := range app.Changes {
					got = append(got, strings.TrimSpace(ch.Action+" "+ch.Object+" "+strings.Join(ch.Paths, " ")))
				}
				if want, ok := c.apps[app.Name]; !ok || !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", app.Name, got, want)
				}
			}
			if strings.Contains(r.stdout+r.stderr, "canary") {
				t.Error("the value of a Secret is shown")
			}
		})
	}
	t.Run("who follows", func(t *testing.T) {
		// stable is at the start, HEAD at the end of this range; only what is at an end counts.
		r := impact(from, docs, "-o", "json")
		r.want(t, cli.CodeError, "1 can not be rendered")
		if n := len(r.impact(t).Applications); n != 6 {
			t.Errorf("%d applications: %s", n, r.stdout)
		}
		r = impact(from, base, "-o", "name")
		r.want(t, cli.CodeOK, "changes 0 of 7", "5 follow another revision")
		r = impact(base, plain, "--any-revision", "-o", "name", "--exit-code")
		r.want(t, cli.CodeDifferent, "lockstep/plain", "lockstep/stable")
	})
	t.Run("everywhere", func(t *testing.T) {
		user := repository(t, map[string]string{"kustomization.yaml": "resources: ['" + repo.URL() + "//base?ref=main']\n"})
		file := filepath.Join(t.TempDir(), "user.yaml")
		if err := os.WriteFile(file, []byte(applicationText("user", user.URL(), ".", "HEAD")), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"impact", "--repo", repo.URL(), "--from", from, "--to", docs, "-f", file}
		lockstep(args...).want(t, cli.CodeOK, "changes 0 of 1")
		lockstep(append(args, "--everywhere")...).want(t, cli.CodeOK, "changes 1 of 1", "data.k")
	})
	t.Run("wrong", func(t *testing.T) {
		impact("", docs).want(t, cli.CodeUsage, "--from")
		impact("nonsense", docs).want(t, cli.CodeError, "nonsense")
		lockstep("impact", "--repo", "oci://x/y", "--from", "a", "--to", "b", "-f", file).want(t, cli.CodeError, "registry of charts")
		lockstep("impact", "--repo", repo.URL(), "--from", "a", "--to", "b", "-f", filepath.Join(t.TempDir(), "none")).want(t, cli.CodeError, "none")
	})
}

// TestImpactOfTheCluster: the applications of the namespace, with the rules of their projects.
func TestImpactOfTheCluster(t *testing.T) {
	c := newCluster(t)
	repo := repository(t, impactFiles())
	from, err := repo.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	to, err := repo.Commit(map[string]string{"base/cm.yaml": strings.ReplaceAll(impactFiles()["base/cm.yaml"], `"1"`, `"2"`)}, "change")
	if err != nil {
		t.Fatal(err)
	}
	project := func(name string, spec map[string]any) {
		t.Helper()
		dyn, err := dynamic.NewForConfig(env.Cluster(t).REST())
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.AppProjectKind, "metadata": map[string]any{"name": name}, "spec": spec,
		}}
		if _, err := dyn.Resource(v1alpha1.AppProjects()).Namespace(c.namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	project("default", map[string]any{"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}}})
	project("narrow", map[string]any{"sourceRepos": []any{"https://git.example/*"}})
	for name, project := range map[string]string{"one": "default", "two": "narrow", "plain": "default"} {
		c.create(t, name, func(a *v1alpha1.Application) {
			a.Spec.Project = project
			a.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: name}
		})
	}
	r := c.lockstep("impact", "--repo", repo.URL(), "--from", from, "--to", to)
	r.want(t, cli.CodeError, "application "+c.namespace+"/one", `-  k: "1"`, `+  k: "2"`, "application "+c.namespace+"/two", "is not permitted", "changes 1 of 3")
}
