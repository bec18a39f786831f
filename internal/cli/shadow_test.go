package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
)

// argoApplies makes an object as Argo CD does: on the server's side, or on the client's with its annotation.
func (c *cluster) argoApplies(t *testing.T, dyn dynamic.Interface, app, text string, server bool) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(c.namespace)
	u.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": app + ":/" + u.GetKind() + ":" + c.namespace + "/" + u.GetName()})
	client := dyn.Resource(resourceOf(u)).Namespace(c.namespace)
	var err error
	if server {
		_, err = client.Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "argocd-controller", Force: true})
	} else {
		note, jerr := json.Marshal(u.Object)
		if jerr != nil {
			t.Fatal(jerr)
		}
		annotations := u.GetAnnotations()
		annotations["kubectl.kubernetes.io/last-applied-configuration"] = string(note) + "\n"
		u.SetAnnotations(annotations)
		_, err = client.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "argocd-controller"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// argoKeeps gives an application the status that Argo CD has given it.
func (c *cluster) argoKeeps(t *testing.T, name, revision string, objects ...string) {
	t.Helper()
	c.create(t, name, func(app *v1alpha1.Application) {
		healthy(app)
		app.Status.Sync.Revision = revision
		app.Spec.Destination.Namespace = c.namespace
		for _, object := range objects {
			app.Status.Resources = append(app.Status.Resources, v1alpha1.ResourceStatus{
				Version: "v1", Kind: "ConfigMap", Namespace: c.namespace, Name: object, Status: v1alpha1.SyncSynced,
			})
		}
	})
}

func TestShadow(t *testing.T) {
	c := newCluster(t)
	dyn, err := dynamic.NewForConfig(env.Cluster(t).REST())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.DefaultProject(t.Context(), dyn, install.Options{Namespace: c.namespace}); err != nil {
		t.Fatal(err)
	}
	repo := repository(t, map[string]string{"client/a.yaml": sameMap, "server/a.yaml": changedMap, "gone/a.yaml": newMap})
	revision, err := repo.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	source := func(name, path string) {
		c.patch(t, name, map[string]any{"spec": map[string]any{"source": map[string]any{"repoURL": repo.URL(), "path": path}}})
	}
	for name, object := range map[string]string{"client": "same", "server": "changed"} {
		c.argoApplies(t, dyn, name, map[string]string{"same": sameMap, "changed": changedMap}[object], name == "server")
		c.argoKeeps(t, name, revision, object)
		source(name, name)
	}
	// What came after Argo CD's last look is no difference.
	if _, err := repo.Commit(map[string]string{"client/a.yaml": strings.Replace(sameMap, "a: b", "a: c", 1)}, "later"); err != nil {
		t.Fatal(err)
	}
	c.lockstep("shadow").want(t, cli.CodeOK, c.namespace+"/client   equal", c.namespace+"/server   equal", "0 of 2 applications differ")

	maps := dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(c.namespace)
	c.argoApplies(t, dyn, "server", strings.Replace(changedMap, "\ndata: {", "\ndata: {more: x, ", 1), true)
	c.argoApplies(t, dyn, "gone", oldMap, false)
	c.argoKeeps(t, "gone", revision, "old")
	source("gone", "gone")
	c.create(t, "far", func(app *v1alpha1.Application) { app.Spec.Destination.Server = "https://far.example" })
	if _, err := maps.Patch(t.Context(), "same", types.MergePatchType, []byte(`{"data":{"a":"by hand"}}`), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
		t.Fatal(err)
	}
	before := c.written(t, dyn)
	r := c.lockstep("shadow", "-o", "json")
	r.want(t, cli.CodeError)
	var got []struct {
		Application, Rendering, Problem string
		RenderedDifferently             []struct {
			Object string
			Paths  []string
		}
		Changes []struct{ Object, Action string }
		Prunes  []string
		Differs bool
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, g := range got {
		text := []string{g.Rendering}
		for _, o := range g.RenderedDifferently {
			text = append(text, "unlike", o.Object, strings.Join(o.Paths, " "))
		}
		for _, ch := range g.Changes {
			text = append(text, ch.Action, ch.Object)
		}
		for _, p := range g.Prunes {
			text = append(text, "prune", p)
		}
		if !g.Differs {
			text = append(text, "in step")
		}
		said[strings.TrimPrefix(g.Application, c.namespace+"/")] = strings.ReplaceAll(strings.TrimSpace(strings.Join(append(text, g.Problem), " ")), c.namespace+"/", "")
	}
	for name, want := range map[string]string{
		"client": "equal update ConfigMap/same", // drift is no matter of rendering
		"server": "different unlike ConfigMap/changed .data.more update ConfigMap/changed",
		"gone":   "different create ConfigMap/new prune ConfigMap/old",
		"far":    "unknown spec.destination.server: cluster https://far.example is not known; known is https://kubernetes.default.svc",
	} {
		if said[name] != want {
			t.Errorf("%s: %q, want %q", name, said[name], want)
		}
	}
	c.lockstep("shadow", "server").want(t, cli.CodeError, "1 of 1 applications differ", "update ConfigMap/"+c.namespace+"/changed .data.more")
	if diff := cmp.Diff(before, c.written(t, dyn)); diff != "" {
		t.Errorf("shadow wrote: %s", diff)
	}
}

// written are the versions of all ConfigMaps and Applications.
func (c *cluster) written(t *testing.T, dyn dynamic.Interface) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, gvr := range []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}, v1alpha1.Applications()} {
		list, err := dyn.Resource(gvr).Namespace(c.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			versions[gvr.Resource+"/"+list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
		}
	}
	return versions
}
