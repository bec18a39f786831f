package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// repository is a real Git repository over HTTP.
func repository(t *testing.T, files map[string]string) *gitserver.Repo {
	t.Helper()
	server, err := gitserver.Start(gitserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	repo, err := server.Create("shop", files)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// live applies manifests as Lockstep would, and returns a way to read and patch objects.
func (c *cluster) live(t *testing.T, app string, manifests ...string) dynamic.Interface {
	t.Helper()
	dyn, err := dynamic.NewForConfig(env.Cluster(t).REST())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range manifests {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(c.namespace)
		u.SetAnnotations(map[string]string{
			"argocd.argoproj.io/tracking-id": app + ":/" + u.GetKind() + ":" + c.namespace + "/" + u.GetName(),
		})
		_, err := dyn.Resource(resourceOf(u)).Namespace(c.namespace).Apply(t.Context(), u.GetName(), u,
			metav1.ApplyOptions{FieldManager: "lockstep", Force: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dyn
}

func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(u.GetKind()) + "s"}
}

const (
	sameMap    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}\ndata: {a: b}\n"
	changedMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: changed}\ndata: {a: b}\n"
	oldMap     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\n"
	newMap     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {a: b}\n"
	secretText = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {password: hunter2, user: ada}\n"
)

func TestAppDiff(t *testing.T) {
	c := newCluster(t)
	dyn, err := dynamic.NewForConfig(env.Cluster(t).REST())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.DefaultProject(t.Context(), dyn, install.Options{Namespace: c.namespace}); err != nil {
		t.Fatal(err)
	}
	repo := repository(t, map[string]string{
		"deploy/same.yaml": sameMap, "deploy/changed.yaml": changedMap, "deploy/new.yaml": newMap,
		"deploy/key.yaml": strings.ReplaceAll(secretText, "hunter2", "correct horse"),
		"empty/.keep":     "",
	})
	c.live(t, "shop", sameMap, changedMap, oldMap, strings.ReplaceAll(strings.ReplaceAll(secretText, "stringData", "data"), "hunter2, user: ada", "aHVudGVyMg==, user: YWRh"))
	byHand := []byte(`{"data":{"a":"by hand"}}`)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if _, err := dyn.Resource(maps).Namespace(c.namespace).Patch(t.Context(), "changed", types.MergePatchType, byHand, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.create(t, "shop", func(app *v1alpha1.Application) {
		app.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: "deploy"}
		app.Spec.Destination.Namespace = c.namespace
		app.Status.Resources = []v1alpha1.ResourceStatus{{Version: "v1", Kind: "ConfigMap", Namespace: c.namespace, Name: "old", RequiresPruning: true}}
	})

	r := c.lockstep("app", "diff", "shop")
	r.want(t, cli.CodeOK,
		"update ConfigMap/"+c.namespace+"/changed (deploy/changed.yaml:1)", "-  a: by hand", "+  a: b",
		"create ConfigMap/"+c.namespace+"/new",
		"prune ConfigMap/"+c.namespace+"/old",
		"update Secret/"+c.namespace+"/key", "+  password: (hidden, another value)",
		"4 of 5 objects differ.")
	if strings.Contains(r.stdout, "/same") {
		t.Errorf("an object in step is shown:\n%s", r.stdout)
	}
	for _, value := range []string{"hunter2", "aHVudGVyMg", "horse", "Y29ycmVjdCBob3JzZQ", "YWRh"} {
		if strings.Contains(r.stdout+r.stderr, value) {
			t.Errorf("the value of a Secret is shown: %s", value)
		}
	}

	t.Run("exit code", func(t *testing.T) {
		r := c.lockstep("app", "diff", "shop", "--exit-code", "-o", "json")
		r.want(t, cli.CodeDifferent)
		var changes []struct{ Object, Action string }
		if err := json.Unmarshal([]byte(r.stdout), &changes); err != nil {
			t.Fatal(err)
		}
		if len(changes) != 4 {
			t.Errorf("%d changes: %v", len(changes), changes)
		}
		if strings.Contains(r.stderr, "different") {
			t.Errorf("the exit code is explained as an error: %s", r.stderr)
		}
	})
	t.Run("local", func(t *testing.T) {
		dir := checkout(t, map[string]string{"here/changed.yaml": changedMap, "here/same.yaml": strings.ReplaceAll(sameMap, "a: b", "a: local")})
		r := c.lockstep("app", "diff", "shop", "--local", filepath.Join(dir, "here"))
		r.want(t, cli.CodeOK, "update ConfigMap/"+c.namespace+"/same (here/same.yaml:1)", "+  a: local", "prune ConfigMap/"+c.namespace+"/old")
		c.lockstep("app", "diff", "shop", "--local", dir, "--revision", "v1").want(t, cli.CodeUsage, "exclude each other")
	})
	t.Run("the second of two sources", func(t *testing.T) {
		other := repository(t, map[string]string{"deploy/two.yaml": strings.ReplaceAll(newMap, "a: b", "a: old")})
		old, err := other.Resolve("HEAD")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Commit(map[string]string{"deploy/two.yaml": strings.ReplaceAll(newMap, "a: b", "a: young")}, "change"); err != nil {
			t.Fatal(err)
		}
		c.create(t, "two", func(app *v1alpha1.Application) {
			app.Spec.Source = nil
			app.Spec.Sources = []v1alpha1.ApplicationSource{{RepoURL: repo.URL(), Path: "empty"}, {RepoURL: other.URL(), Path: "deploy"}}
			app.Spec.Destination.Namespace = c.namespace
		})
		c.lockstep("app", "diff", "two").want(t, cli.CodeOK, "a: young")
		c.lockstep("app", "diff", "two", "--revision", "2:"+old).want(t, cli.CodeOK, "a: old")
		c.lockstep("app", "diff", "two", "--revision", old).want(t, cli.CodeUsage, "2 sources", "POSITION:REVISION")
	})
	t.Run("unknown revision", func(t *testing.T) {
		c.lockstep("app", "diff", "shop", "--revision", "nope").want(t, cli.CodeError, "nope")
	})
	t.Run("nothing was written", func(t *testing.T) {
		u, err := dyn.Resource(maps).Namespace(c.namespace).Get(t.Context(), "changed", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if a, _, _ := unstructured.NestedString(u.Object, "data", "a"); a != "by hand" {
			t.Errorf("data.a is %q after a diff", a)
		}
	})
	t.Run("in step", func(t *testing.T) {
		c.live(t, "shop", changedMap, newMap)
		c.create(t, "calm", func(app *v1alpha1.Application) {
			app.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: repo.URL(), Path: "deploy",
				Directory: &v1alpha1.ApplicationSourceDirectory{Include: "same.yaml"}}
			app.Spec.Destination.Namespace = c.namespace
		})
		c.live(t, "calm", sameMap)
		c.lockstep("app", "diff", "calm", "--exit-code").want(t, cli.CodeOK, "nothing differs; objects compared: 1.")
	})
}

func TestAppDiffWithoutItsProject(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", func(app *v1alpha1.Application) { app.Spec.Project = "customs" })
	c.lockstep("app", "diff", "shop").want(t, cli.CodeError, "project customs: does not exist in namespace "+c.namespace)
}

func TestRenderFetchesTheSources(t *testing.T) {
	repo := repository(t, map[string]string{
		"chart/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"chart/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {from: '{{ .Values.from }}'}\n",
		"values.yaml":            "from: repository\n",
	})
	file := filepath.Join(t.TempDir(), "app.yaml")
	app := `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop}
spec:
  project: default
  destination: {name: in-cluster, namespace: prod}
  sources:
  - {repoURL: REPOSITORY, ref: values}
  - {repoURL: REPOSITORY, path: chart, helm: {valueFiles: [$values/values.yaml]}}
`
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(app, "REPOSITORY", repo.URL())), 0o644); err != nil {
		t.Fatal(err)
	}
	lockstep("render", "-f", file).want(t, cli.CodeOK, "from: repository")
	lockstep("render", "-f", file, t.TempDir()).want(t, cli.CodeUsage, "2 sources; a folder can stand for one")
}

func TestRenderFetchesRemoteBases(t *testing.T) {
	repo := repository(t, map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": sameMap})
	dir := checkout(t, map[string]string{"kustomization.yaml": "namePrefix: p-\nresources: ['" + repo.URL() + "//base?ref=HEAD']\n"})
	lockstep("render", dir, "-o", "name").want(t, cli.CodeOK, "ConfigMap/p-same")
}
