package engine_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// tool is how something else than Lockstep writes objects.
type tool struct {
	manager string
	// server tells that it applies on the server's side; else it creates, and notes what it sent in an annotation.
	server bool
	// bare leaves that annotation out.
	bare bool
	// mark is the tracking annotation of this application, as Argo CD sets it; empty for none.
	mark string
}

// by makes objects as the tool makes them.
func (w *world) by(m tool, plurals map[string]string, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			w.t.Fatal(err)
		}
		u.SetNamespace(w.dest)
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if m.mark != "" {
			annotations[engine.TrackingAnnotation] = fmt.Sprintf("%s:%s/%s:%s/%s", w.real(m.mark), u.GroupVersionKind().Group, u.GetKind(), w.dest, u.GetName())
			u.SetAnnotations(annotations)
		}
		client := w.resource(u.GetAPIVersion(), plurals[u.GetKind()])
		var err error
		if m.server {
			_, err = client.Apply(w.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: m.manager, Force: true})
		} else {
			if !m.bare {
				sent, jerr := json.Marshal(u.Object)
				if jerr != nil {
					w.t.Fatal(jerr)
				}
				annotations[lastApplied] = string(sent)
				u.SetAnnotations(annotations)
			}
			_, err = client.Create(w.t.Context(), u, metav1.CreateOptions{FieldManager: m.manager})
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func plurals() map[string]string {
	return map[string]string{"Deployment": "deployments", "ConfigMap": "configmaps", "Service": "services", "Secret": "secrets"}
}

const (
	adoptedMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {team: a, old: label}}\ndata: {keep: a, old: b}\n"
	laterMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {team: a}}\ndata: {keep: a}\n"
	adoptedSvc = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: old, port: 81}]}\n"
	laterSvc   = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{name: http, port: 80}]}\n"
)

// adoptedWeb is a Deployment; old adds what the next commit drops.
func adoptedWeb(old bool) string {
	extra, env := "", ""
	if old {
		extra, env = "\n  minReadySeconds: 2\n  revisionHistoryLimit: 3", "{name: OLD, value: x}, "
	}
	text := deployment("web", oldImage, 1)
	text = strings.Replace(text, "\n  replicas: 1", extra, 1) // nobody declares replicas: what created it owns the default
	return strings.Replace(text, fmt.Sprintf("image: %q", oldImage), fmt.Sprintf("image: %q, env: [%s{name: KEEP, value: kept}]", oldImage, env), 1)
}

func adoptedFiles() map[string]string {
	return map[string]string{"app/cm.yaml": adoptedMap, "app/svc.yaml": adoptedSvc, "app/web.yaml": adoptedWeb(true)}
}

func laterFiles() map[string]string {
	return map[string]string{"app/cm.yaml": laterMap, "app/svc.yaml": laterSvc, "app/web.yaml": adoptedWeb(false)}
}

// What another tool made is in step when it is as Git says, without any write; what the next commit drops is really gone.
func TestAdoption(t *testing.T) {
	for name, c := range map[string]struct {
		tool   tool
		change func(*v1alpha1.Application)
	}{
		"Argo CD, client side": {tool: tool{manager: "argocd-controller"}},
		"Argo CD, server side": {tool: tool{manager: "argocd-controller", server: true}},
		"kubectl apply":        {tool: tool{manager: "kubectl-client-side-apply"}},
		"a manager by its name": {tool: tool{manager: "our-pipeline", bare: true}, change: func(a *v1alpha1.Application) {
			a.Annotations = map[string]string{"argocd.argoproj.io/client-side-apply-migration-manager": "our-pipeline"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.tool.mark = "adopt"
			w.by(c.tool, plurals(), adoptedMap, adoptedSvc, adoptedWeb(true))
			r := w.repo("adopt", adoptedFiles())
			changes := []func(*v1alpha1.Application){}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			before := w.live("v1", "configmaps", "settings")
			w.app("adopt", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, changes...)
			w.untouched("adopt")
			if got := w.live("v1", "configmaps", "settings"); got.GetResourceVersion() != before.GetResourceVersion() {
				t.Errorf("settings was written: %v", got.GetManagedFields())
			}
			if g := w.live("apps/v1", "deployments", "web").GetGeneration(); g != 1 {
				t.Errorf("web has generation %d", g)
			}
			sha := w.commit(r, laterFiles())
			w.settled("adopt", sha)
			w.checkAdopted(c.tool.manager)
			w.quiet("adopt")
		})
	}
}

// untouched tells that the application is in step without any operation, also when it is looked at anew.
func (w *world) untouched(name string) {
	w.t.Helper()
	w.settled(name, "")
	for range 2 {
		w.refresh(name, "hard")
		if app := w.settled(name, ""); app.Status.OperationState != nil {
			w.t.Fatalf("taking over is a difference: %s", operation(app))
		}
	}
}

// checkAdopted tells that what the later commit dropped is gone and that nothing of the former manager is left.
func (w *world) checkAdopted(former string) {
	w.t.Helper()
	cm, svc, web := w.live("v1", "configmaps", "settings"), w.live("v1", "services", "web"), w.live("apps/v1", "deployments", "web")
	if got := fmt.Sprint(cm.Object["data"], cm.GetLabels()); got != "map[keep:a] map[team:a]" {
		w.t.Errorf("settings: %s", got)
	}
	if ports, _, _ := unstructured.NestedSlice(svc.Object, "spec", "ports"); len(ports) != 1 {
		w.t.Errorf("ports %v", ports)
	}
	spec, _ := web.Object["spec"].(map[string]any)
	if spec["minReadySeconds"] != nil || fmt.Sprint(spec["revisionHistoryLimit"]) != "10" {
		w.t.Errorf("minReadySeconds %v, revisionHistoryLimit %v", spec["minReadySeconds"], spec["revisionHistoryLimit"])
	}
	containers, _, _ := unstructured.NestedSlice(web.Object, "spec", "template", "spec", "containers")
	c, _ := containers[0].(map[string]any)
	if got := fmt.Sprint(c["env"]); got != "[map[name:KEEP value:kept]]" {
		w.t.Errorf("env %s", got)
	}
	for _, u := range []*unstructured.Unstructured{cm, svc, web} {
		if _, there := u.GetAnnotations()[lastApplied]; there {
			w.t.Errorf("%s keeps the last applied configuration", u.GetKind())
		}
		for _, f := range u.GetManagedFields() {
			if f.Manager == former && f.Subresource == "" {
				w.t.Errorf("%s: %s owns %s", u.GetKind(), f.Manager, f.FieldsV1.GetRawString())
			}
		}
	}
}

// An object without a tracking mark is taken over by the sync that marks it: no pod restarts, and what Git does not declare
// goes with the same sync.
func TestAdoptionWithoutMark(t *testing.T) {
	w := newWorld(t)
	w.by(tool{manager: "kubectl-client-side-apply"}, plurals(), adoptedMap, adoptedSvc, adoptedWeb(true))
	before := w.live("apps/v1", "deployments", "web")
	r := w.repo("unmarked", adoptedFiles())
	w.app("unmarked", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("unmarked", "")
	web := w.live("apps/v1", "deployments", "web")
	if diff := cmp.Diff(before.Object["spec"], web.Object["spec"]); diff != "" { // its generation also counts annotations
		t.Errorf("web changed: %s", diff)
	}
	if _, there := web.GetAnnotations()[lastApplied]; there {
		t.Error("web keeps the last applied configuration")
	}
	sha := w.commit(r, laterFiles())
	w.settled("unmarked", sha)
	w.checkAdopted("kubectl-client-side-apply")
}

// What somebody else than a predecessor wrote, or anybody with ClientSideApplyMigration=false, stays.
func TestAdoptionLeavesOthers(t *testing.T) {
	for name, c := range map[string]struct {
		manager string
		options []string
	}{
		"another manager": {manager: "our-operator"},
		"switched off":    {manager: "kubectl-client-side-apply", options: []string{"ClientSideApplyMigration=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.by(tool{manager: c.manager, mark: "others"}, plurals(), adoptedMap)
			r := w.repo("others", map[string]string{"app/cm.yaml": laterMap})
			w.app("others", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
				a.Spec.SyncPolicy.SyncOptions = c.options
			})
			w.settled("others", "")
			sha := w.commit(r, map[string]string{"app/cm.yaml": strings.Replace(laterMap, "keep: a", "keep: new", 1)})
			w.settled("others", sha)
			if data, _ := w.configMap("settings"); data["old"] != "b" || data["keep"] != "new" {
				t.Errorf("data %v", data)
			}
		})
	}
}

// An object that the API server keeps no books of: what client-side apply noted is taken over, nothing else.
func TestAdoptionBeforeBooks(t *testing.T) {
	w := newWorld(t)
	w.by(tool{manager: "kubectl-client-side-apply", mark: "books"}, plurals(), adoptedMap)
	cms := w.resource("v1", "configmaps")
	t.Cleanup(func() { w.finalizers("settings", "[]") })
	w.finalizers("settings", `["example.com/keep"]`)
	if _, err := cms.Patch(t.Context(), "settings", types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]},"data":{"hand":"c"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if f := w.live("v1", "configmaps", "settings").GetManagedFields(); len(f) > 0 {
		t.Fatalf("managedFields %v", f)
	}
	r := w.repo("books", map[string]string{"app/cm.yaml": adoptedMap})
	w.app("books", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.untouched("books")
	if f := w.live("v1", "configmaps", "settings").GetManagedFields(); len(f) > 0 {
		t.Errorf("it was written: %v", f)
	}
	sha := w.commit(r, map[string]string{"app/cm.yaml": laterMap})
	w.settled("books", sha)
	u := w.live("v1", "configmaps", "settings")
	if got := fmt.Sprint(u.Object["data"], u.GetLabels(), u.GetFinalizers()); got != "map[hand:c keep:a] map[team:a] [example.com/keep]" {
		t.Errorf("settings: %s", got)
	}
}

func (w *world) finalizers(name, list string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // also for clean-up, after the test's own context
	defer cancel()
	patch := []byte(`{"metadata":{"finalizers":` + list + `}}`)
	if _, err := w.resource("v1", "configmaps").Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

// C060, the part of the live Secret `old`: kubectl noted its value in an annotation, which goes with the adoption and is
// never shown.
func TestC060AdoptedSecret(t *testing.T) {
	w := newWorld(t)
	const canary = "CANARY-D"
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: old}\ndata: {k: " + encoded + "}\n"
	w.by(tool{manager: "kubectl-client-side-apply"}, plurals(), secret)
	r := w.repo("c060", map[string]string{"app/old.yaml": secret})
	w.app("c060", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, manual)
	w.until("compared", func() (string, bool) {
		s := w.get("c060").Status.Sync.Status
		return string(s), s == v1alpha1.SyncOutOfSync
	})
	w.hides("c060", canary, encoded)
	w.patchApp("c060", `{"spec":{"syncPolicy":{"automated":{}}}}`)
	w.settled("c060", "")
	u := w.live("v1", "secrets", "old")
	if note, there := u.GetAnnotations()[lastApplied]; there {
		t.Errorf("the annotation is still there: %d bytes", len(note))
	}
	if got, _, _ := unstructured.NestedString(u.Object, "data", "k"); got != encoded {
		t.Errorf("value %q", got)
	}
	w.hides("c060", canary, encoded)
}

// hides tells that none of the words is in the application, its events or the log.
func (w *world) hides(name string, words ...string) {
	w.t.Helper()
	app, err := json.Marshal(w.get(name))
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(w.control).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := json.Marshal(list)
	if err != nil {
		w.t.Fatal(err)
	}
	for place, text := range map[string]string{"application": string(app), "log": w.log.String(), "events": string(events)} {
		for _, word := range words {
			if strings.Contains(text, word) {
				w.t.Errorf("%s shows %s", place, word)
			}
		}
	}
}

// C016, seed variant: the name twice as kubectl apply wrote it.
func TestC016AdoptedFromKubectlApply(t *testing.T) {
	w := newWorld(t)
	envs := func(env string) string {
		return strings.Replace(deployment("envs", oldImage, 1), fmt.Sprintf("image: %q", oldImage), fmt.Sprintf("image: %q, env: [%s]", oldImage, env), 1)
	}
	const twice = "{name: MODE, value: one}, {name: ZONE, value: z}, {name: MODE, value: two}"
	w.by(tool{manager: "kubectl-client-side-apply"}, plurals(), envs(twice))
	r := w.repo("c016k", map[string]string{"app/envs.yaml": envs(twice)})
	w.app("c016k", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.until("refused by name", func() (string, bool) { // by the comparison or by the sync, whichever comes first
		conditions := fmt.Sprint(w.get("c016k").Status.Conditions)
		return conditions, strings.Contains(conditions, `containers[name="c"].env`) && strings.Contains(conditions, "MODE")
	})
	sha := w.commit(r, map[string]string{"app/envs.yaml": envs("{name: ZONE, value: z}, {name: MODE, value: two}")})
	w.settled("c016k", sha)
	list, _, _ := unstructured.NestedSlice(w.live("apps/v1", "deployments", "envs").Object, "spec", "template", "spec", "containers")
	c, _ := list[0].(map[string]any)
	if got := fmt.Sprint(c["env"]); got != "[map[name:ZONE value:z] map[name:MODE value:two]]" {
		t.Errorf("env %s", got)
	}
}
