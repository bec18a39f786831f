package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// labelled is a deployment with the label that C031 takes away; replicas 0 leaves the field out.
func labelled(image string, replicas int) string {
	text := strings.Replace(deployment("web", image, replicas), "metadata: {name: web}",
		"metadata: {name: web, labels: {app.kubernetes.io/part-of: shop}}", 1)
	if replicas == 0 {
		text = strings.Replace(text, "  replicas: 0\n", "", 1)
	}
	return text
}

func ignoring(respect bool, rules ...v1alpha1.ResourceIgnoreDifferences) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) {
		a.Spec.IgnoreDifferences = rules
		if respect {
			a.Spec.SyncPolicy.SyncOptions = []string{"RespectIgnoreDifferences=true"}
		}
	}
}

func replicasRule() v1alpha1.ResourceIgnoreDifferences {
	return v1alpha1.ResourceIgnoreDifferences{Group: "apps", Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}}
}

// scale does what kubectl scale and a HorizontalPodAutoscaler do.
func (w *world) scale(name, manager string, n int) {
	w.t.Helper()
	_, err := w.resource("apps/v1", "deployments").Patch(w.t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{FieldManager: manager}, "scale")
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) live(apiVersion, plural, name string) *unstructured.Unstructured {
	w.t.Helper()
	return liveOf(w.t, w.resource(apiVersion, plural), name)
}

func liveOf(t *testing.T, r dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := r.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func replicas(u *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return n
}

func image(u *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if len(list) == 0 {
		return ""
	}
	c, _ := list[0].(map[string]any)
	s, _ := c["image"].(string)
	return s
}

// history is every state of one object that the API server reports from now on.
type history struct {
	mu   sync.Mutex
	seen []*unstructured.Unstructured
}

func (h *history) all() []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*unstructured.Unstructured(nil), h.seen...)
}

// follow watches an object until the test ends.
func follow(t *testing.T, r dynamic.ResourceInterface, name string) *history {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := r.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: liveOf(t, r, name).GetResourceVersion()})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	h := &history{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for ev := range watch.ResultChan() {
			if u, ok := ev.Object.(*unstructured.Unstructured); ok {
				h.mu.Lock()
				h.seen = append(h.seen, u)
				h.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { watch.Stop(); cancel(); wg.Wait() })
	return h
}

const (
	oldImage = "registry.k8s.io/pause:3.9"
	newImage = "registry.k8s.io/pause:3.10"
)

// C031: an ignored and respected number of replicas survives syncs and self-heals for other reasons.
func TestC031IgnoredReplicasAreKept(t *testing.T) {
	w := newWorld(t)
	r := w.repo("c031", map[string]string{"app/web.yaml": labelled(oldImage, 2), "app/cm.yaml": configMap("other", "1")})
	w.app("c031", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(true, replicasRule()))
	w.settled("c031", "")
	deployments := w.resource("apps/v1", "deployments")
	if n := replicas(w.live("apps/v1", "deployments", "web")); n != 2 {
		t.Fatalf("first creation used %d replicas", n)
	}
	w.scale("web", "kubectl", 5)
	seen := follow(t, deployments, "web")

	sha := w.commit(r, map[string]string{"app/web.yaml": labelled(newImage, 2)})
	w.settled("c031", sha)
	if u := w.live("apps/v1", "deployments", "web"); image(u) != newImage || replicas(u) != 5 {
		t.Errorf("after the image commit: %s, %d replicas", image(u), replicas(u))
	}
	if _, err := deployments.Patch(t.Context(), "web", types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/metadata/labels/app.kubernetes.io~1part-of"}]`), metav1.PatchOptions{FieldManager: "kubectl-label"}); err != nil {
		t.Fatal(err)
	}
	w.until("label back", func() (string, bool) {
		u := w.live("apps/v1", "deployments", "web")
		return fmt.Sprint(u.GetLabels()), u.GetLabels()["app.kubernetes.io/part-of"] == "shop"
	})
	// A second scaling, then a change of another object of the application, then one of the ignored field in Git.
	w.scale("web", "kube-controller-manager", 4)
	sha = w.commit(r, map[string]string{"app/cm.yaml": configMap("other", "2")})
	w.settled("c031", sha)
	w.until("the other object", func() (string, bool) { data, _ := w.configMap("other"); return data["k"], data["k"] == "2" })
	// An edit of the other object is put back without touching this one.
	if _, err := w.resource("v1", "configmaps").Patch(t.Context(), "other", types.MergePatchType, []byte(`{"data":{"k":"by hand"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the other object put back", func() (string, bool) { data, _ := w.configMap("other"); return data["k"], data["k"] == "2" })
	// Replicas leave Git: what autoscaling needs. They are nobody else's matter then, and stay.
	sha = w.commit(r, map[string]string{"app/web.yaml": labelled(newImage, 0)})
	w.refresh("c031", "normal")
	w.settled("c031", sha)
	w.until("nothing left to do", func() (string, bool) {
		op := w.get("c031").Status.OperationState
		return fmt.Sprint(op), op.Phase == v1alpha1.OperationSucceeded
	})
	if n := replicas(w.live("apps/v1", "deployments", "web")); n != 4 {
		t.Errorf("at the end: %d replicas", n)
	}
	for _, u := range seen.all() {
		if n := replicas(u); n != 5 && n != 4 {
			t.Errorf("%d replicas at version %s", n, u.GetResourceVersion())
		}
	}
}

// Replicas that only we own stay when they leave Git while the rule stands.
func TestC031IgnoredReplicasLeaveGit(t *testing.T) {
	w := newWorld(t)
	r := w.repo("leave", map[string]string{"app/web.yaml": labelled(oldImage, 3)})
	w.app("leave", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(true, replicasRule()))
	w.settled("leave", "")
	sha := w.commit(r, map[string]string{"app/web.yaml": labelled(newImage, 0)})
	w.settled("leave", sha)
	if u := w.live("apps/v1", "deployments", "web"); replicas(u) != 3 || image(u) != newImage {
		t.Errorf("%d replicas, image %s", replicas(u), image(u))
	}
}

// C031, variant 2: replicas that are not in Git belong to the autoscaler; nothing is ignored and nothing drifts.
func TestC031ReplicasNotInGit(t *testing.T) {
	w := newWorld(t)
	r := w.repo("hpa", map[string]string{"app/web.yaml": labelled(oldImage, 0), "app/cm.yaml": configMap("mark", "1")})
	w.app("hpa", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	app := w.settled("hpa", "")
	w.scale("web", "kube-controller-manager", 3)
	seen := follow(t, w.resource("apps/v1", "deployments"), "web")
	sha := w.commit(r, map[string]string{"app/cm.yaml": configMap("mark", "2"), "app/web.yaml": labelled(newImage, 0)})
	after := w.settled("hpa", sha)
	if len(after.Status.History) != len(app.Status.History)+1 {
		t.Errorf("%d deployments, then %d", len(app.Status.History), len(after.Status.History))
	}
	for _, u := range seen.all() {
		if replicas(u) != 3 {
			t.Errorf("%d replicas at version %s", replicas(u), u.GetResourceVersion())
		}
	}
}

// Without RespectIgnoreDifferences the rules are for the comparison alone: the next sync sends what Git says.
func TestIgnoredFieldsAreComparedOnly(t *testing.T) {
	w := newWorld(t)
	r := w.repo("only", map[string]string{"app/web.yaml": labelled(oldImage, 2), "app/cm.yaml": configMap("other", "1")})
	w.app("only", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(false, replicasRule()))
	w.settled("only", "")
	w.scale("web", "kubectl", 3)
	// A heal of another object looks at this one and leaves it.
	if _, err := w.resource("v1", "configmaps").Patch(t.Context(), "other", types.MergePatchType, []byte(`{"data":{"k":"by hand"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the other object put back", func() (string, bool) { data, _ := w.configMap("other"); return data["k"], data["k"] == "1" })
	w.settled("only", "")
	if n := replicas(w.live("apps/v1", "deployments", "web")); n != 3 {
		t.Errorf("a heal of another object set %d replicas", n)
	}
	w.commit(r, map[string]string{"app/cm.yaml": configMap("other", "2")})
	w.until("the sync resets replicas", func() (string, bool) {
		n := replicas(w.live("apps/v1", "deployments", "web"))
		return fmt.Sprint(n), n == 2
	})
}

// A rule that can't be read is said, and nothing that runs is touched.
func TestInvalidIgnoreRuleTouchesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.repo("bad", map[string]string{"app/cm.yaml": configMap("a", "1")})
	w.app("bad", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("bad", "")
	w.patchApp("bad", `{"spec":{"ignoreDifferences":[{"kind":"ConfigMap","jqPathExpressions":[".data[\"k"]}]}}`)
	w.condition("bad", v1alpha1.ConditionInvalidSpecError, "spec.ignoreDifferences[0].jqPathExpressions[0]")
	w.patchApp("bad", `{"spec":{"ignoreDifferences":[{"kind":"ConfigMap"},{"kind":"ConfigMap","jsonPointers":["data/k"]}]}}`)
	w.condition("bad", v1alpha1.ConditionInvalidSpecError, "spec.ignoreDifferences[1].jsonPointers[0]", "slash")
	w.commit(r, map[string]string{"app/cm.yaml": configMap("a", "2")})
	w.refresh("bad", "normal")
	if data, _ := w.configMap("a"); data["k"] != "1" {
		t.Errorf("applied %v", data)
	}
	w.patchApp("bad", `{"spec":{"ignoreDifferences":null}}`)
	w.until("synced again", func() (string, bool) { data, _ := w.configMap("a"); return data["k"], data["k"] == "2" })
}

// Fields ignored by jq may depend on values that no ownership entry tells of: these are followed by content.
func TestIgnoredByExpressionIsFollowed(t *testing.T) {
	w := newWorld(t)
	r := w.repo("jq", map[string]string{"app/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {mode: auto, k: git}\n"})
	w.app("jq", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(false, v1alpha1.ResourceIgnoreDifferences{
		Kind: "ConfigMap", JQPathExpressions: []string{`.data | select(.k == "git" or (.k | startswith("auto-"))) | .k`},
	}))
	w.settled("jq", "")
	cms := w.resource("v1", "configmaps")
	edit := func(k string) {
		t.Helper()
		if _, err := cms.Patch(t.Context(), "a", types.MergePatchType, fmt.Appendf(nil, `{"data":{"k":%q}}`, k), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Fatal(err)
		}
	}
	edit("auto-1")
	w.refresh("jq", "normal")
	w.settled("jq", "")
	if data, _ := w.configMap("a"); data["k"] != "auto-1" {
		t.Errorf("an ignored edit was put back: %v", data)
	}
	edit("by hand")
	w.until("put back", func() (string, bool) { data, _ := w.configMap("a"); return data["k"], data["k"] == "git" })
}

// C018: rules of an aggregated ClusterRole are the control plane's; its other fields are still ours.
func TestC018AggregatedRules(t *testing.T) {
	w := newWorld(t)
	label, agg, part := w.dest+".example.com/to-agg", "agg-"+w.dest, "part-"+w.dest
	aggregated := fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\n"+
		"aggregationRule: {clusterRoleSelectors: [{matchLabels: {%s: \"true\"}}]}\nrules: []\n", agg, label)
	partOf := func(labels string) string {
		return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s%s}\n"+
			"rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n", part, labels)
	}
	roles := w.client.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"})
	t.Cleanup(func() {
		for _, name := range []string{agg, part} {
			_ = roles.Delete(context.Background(), name, metav1.DeleteOptions{}) // the test's own context has ended
		}
	})
	rules := func(u *unstructured.Unstructured) int {
		list, _, _ := unstructured.NestedSlice(u.Object, "rules")
		return len(list)
	}
	r := w.repo("c018", map[string]string{"app/agg.yaml": aggregated, "app/part.yaml": partOf(", labels: {" + label + `: "true"}`)})
	w.app("c018", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	app := w.settled("c018", "")
	w.until("aggregated", func() (string, bool) { n := rules(liveOf(t, roles, agg)); return fmt.Sprint(n), n == 1 })
	seen := follow(t, roles, agg)
	w.refresh("c018", "hard")
	after := w.settled("c018", "")
	if len(after.Status.History) != len(app.Status.History) || !after.Status.OperationState.FinishedAt.Equal(app.Status.OperationState.FinishedAt) {
		t.Errorf("synced again: %s", operation(after))
	}
	for _, u := range seen.all() {
		if rules(u) != 1 {
			t.Errorf("%d rules at version %s", rules(u), u.GetResourceVersion())
		}
	}
	// A changed aggregation label is drift.
	if _, err := roles.Patch(t.Context(), agg, types.MergePatchType,
		[]byte(`{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"example.com/other":"true"}}]}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	w.until("selector put back", func() (string, bool) {
		u := liveOf(t, roles, agg)
		return fmt.Sprint(u.Object["aggregationRule"]), strings.Contains(fmt.Sprint(u.Object["aggregationRule"]), label) && rules(u) == 1
	})
	sha := w.commit(r, map[string]string{"app/part.yaml": partOf("")})
	w.settled("c018", sha)
	if l := liveOf(t, roles, part).GetLabels(); len(l) != 0 {
		t.Errorf("labels %v", l)
	}
	w.until("rules gone", func() (string, bool) { n := rules(liveOf(t, roles, agg)); return fmt.Sprint(n), n == 0 })
	w.settled("c018", sha)
}

// refresh asks for a look and waits until it was made.
func (w *world) refresh(name, how string) {
	w.t.Helper()
	w.patchApp(name, fmt.Sprintf(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":%q}}}`, how))
	w.until("looked at", func() (string, bool) {
		a := w.get(name).Annotations["argocd.argoproj.io/refresh"]
		return a, a == ""
	})
}

// quiet tells that for some looks in a row, each made on request, no operation began.
func (w *world) quiet(name string) {
	w.t.Helper()
	before := w.settled(name, "")
	for range 3 {
		w.refresh(name, "hard")
		now := w.get(name)
		if now.Status.Sync.Status != v1alpha1.SyncSynced || !now.Status.OperationState.StartedAt.Equal(&before.Status.OperationState.StartedAt) {
			w.t.Errorf("%s does not rest: %s, %s", name, now.Status.Sync.Status, operation(now))
		}
	}
}

// IgnoreExtraneous: what left Git does not make the application OutOfSync and is not pruned on its own account; a sync that
// prunes takes it.
func TestIgnoreExtraneous(t *testing.T) {
	w := newWorld(t)
	r := w.repo("extra", map[string]string{
		"app/a.yaml": configMap("a", "1"),
		"app/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {argocd.argoproj.io/compare-options: \"ServerSideDiff=true,IgnoreExtraneous\"}}\n",
	})
	w.app("extra", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) {
		a.Annotations = map[string]string{"argocd.argoproj.io/compare-options": "ServerSideDiff=false,IncludeMutationWebhook=true"}
	})
	w.settled("extra", "")
	sha := w.commit(r, map[string]string{"app/b.yaml": gitserver.Deleted})
	w.refresh("extra", "normal")
	if app := w.settled("extra", sha); len(app.Status.History) != 1 {
		t.Errorf("%d deployments", len(app.Status.History))
	}
	if _, there := w.configMap("b"); !there {
		t.Error("b was pruned on its own")
	}
	w.patchApp("extra", `{"operation":{"sync":{"prune":true}}}`)
	w.until("b pruned", func() (string, bool) { _, there := w.configMap("b"); return operation(w.get("extra")), !there })
	w.settled("extra", sha)
}

// A preview leaves out what is ignored and says who wrote the rest.
func TestPreviewNamesTheAuthor(t *testing.T) {
	w := newWorld(t)
	r := w.repo("author", map[string]string{"app/web.yaml": labelled(oldImage, 2)})
	w.app("author", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(false, replicasRule()), func(a *v1alpha1.Application) {
		a.Spec.SyncPolicy.Automated.SelfHeal = false
	})
	w.settled("author", "")
	w.scale("web", "kubectl", 3)
	if _, err := w.resource("apps/v1", "deployments").Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app.kubernetes.io/part-of":"else"}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	repositories := repository.NewSet()
	store, err := git.Open(git.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	preview, err := engine.NewPreview(unlimited(w.cluster.REST()), &engine.Sources{Git: store, Repositories: repositories})
	if err != nil {
		t.Fatal(err)
	}
	diffs, err := preview.Diff(t.Context(), w.get("author"), project.Anything())
	if err != nil {
		t.Fatal(err)
	}
	if len(diffs) != 1 || len(diffs[0].Paths) != 1 || !strings.HasPrefix(diffs[0].Note, ".metadata.labels.app.kubernetes.io/part-of differs; last written by kubectl edit at 20") {
		t.Errorf("%+v", diffs)
	}
}

// Objects of a predecessor keep their ignored fields when they are taken over, whoever owns these and whether or not Git
// declares them.
func TestC031AdoptedReplicasAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		git    int
		scaled bool
	}{
		"declared, scaled": {git: 2, scaled: true}, "declared": {git: 2}, "not declared": {}, "not declared, scaled": {scaled: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			body, err := yaml.YAMLToJSON([]byte(labelled(oldImage, 3)))
			if err != nil {
				t.Fatal(err)
			}
			force := true
			if _, err := w.resource("apps/v1", "deployments").Patch(t.Context(), "web", types.ApplyPatchType, body,
				metav1.PatchOptions{FieldManager: "argocd-controller", Force: &force}); err != nil {
				t.Fatal(err)
			}
			if c.scaled {
				w.scale("web", "kube-controller-manager", 4)
				w.scale("web", "kube-controller-manager", 3)
			}
			seen := follow(t, w.resource("apps/v1", "deployments"), "web")
			r := w.repo("adopt", map[string]string{"app/web.yaml": labelled(newImage, c.git)})
			w.app("adopt", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, ignoring(true, replicasRule()))
			w.settled("adopt", "")
			sha := w.commit(r, map[string]string{"app/web.yaml": labelled(oldImage, c.git)})
			w.settled("adopt", sha)
			for _, u := range seen.all() {
				if replicas(u) != 3 {
					t.Errorf("%d replicas at version %s", replicas(u), u.GetResourceVersion())
				}
			}
		})
	}
}
