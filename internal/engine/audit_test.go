package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// audit holds every application against a look from scratch: each test ends with it.
func (w *world) audit() {
	if w.engine == nil || w.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own context has ended
	defer cancel()
	if _, found := w.engine.Audit(ctx); len(found) > 0 && !w.deaf {
		for _, m := range found {
			w.t.Error(m)
		}
	}
}

// missed is one input that changes without anybody being woken.
type missed struct {
	input engine.Input
	// object is a part of what the audit names.
	object string
	// before is the world as it is settled; change is what is missed.
	before, change func(w *world, r *gitserver.Repo)
}

// Each kind of wake-up is taken away in turn, and the audit says which one is missing. Afterwards the application is mended.
func TestAuditSeesEachMissedWakeUp(t *testing.T) {
	for _, c := range []missed{
		{input: engine.InputApplication, change: func(w *world, _ *gitserver.Repo) {
			w.patchApp("web", `{"spec":{"source":{"path":"other"}}}`)
		}},
		{input: engine.InputProject, object: "limited", change: func(w *world, _ *gitserver.Repo) {
			patch(w, w.projects(), "limited", `{"spec":{"namespaceResourceBlacklist":[{"group":"","kind":"Secret"}]}}`)
		}},
		{input: engine.InputSettings, object: "argocd-cm", change: func(w *world, _ *gitserver.Repo) {
			w.setting(map[string]string{"installationID": "here"})
		}},
		{input: engine.InputRepository, object: "HEAD", change: func(w *world, r *gitserver.Repo) {
			w.commit(r, map[string]string{"web/cm.yaml": configMap("one", "2")})
		}},
		{input: engine.InputLive, object: "ConfigMap", change: func(w *world, _ *gitserver.Repo) {
			patch(w, w.resource("v1", "configmaps"), "one", `{"data":{"k":"by hand"}}`)
		}},
		{input: engine.InputDependency, before: func(w *world, _ *gitserver.Repo) {
			w.patchApp("web", fmt.Sprintf(`{"metadata":{"annotations":{"lockstep.dev/depends-on":%q}},"spec":{"source":{"path":"other"}}}`, w.real("first")))
			w.condition("web", v1alpha1.ConditionWaitingWarning, "waits for application")
		}, change: func(w *world, r *gitserver.Repo) {
			w.app("first", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "first"})
			w.settled("first", "")
		}},
	} {
		t.Run(string(c.input), func(t *testing.T) {
			w := newWorld(t)
			w.limited()
			r := w.repo("r", map[string]string{"web/cm.yaml": configMap("one", "1"), "other/cm.yaml": configMap("two", "1"), "first/cm.yaml": configMap("three", "1")})
			w.app("web", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "web", TargetRevision: "HEAD"}, func(a *v1alpha1.Application) { a.Spec.Project = "limited" })
			w.settled("web", "")
			if c.before != nil {
				c.before(w, r)
			}
			w.misses(c, func() { c.change(w, r) })
		})
	}
}

// Credentials that are put right and that nobody is told of.
func TestAuditSeesMissedCredentials(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.tune = func(o *engine.Options) { // what failed is asked for again after 10 s anyway
		o.PollInterval, o.Audit.Settle = time.Hour, 500*time.Millisecond
	}
	w.start()
	private, err := gitserver.Start(gitserver.Options{Username: "robot", Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = private.Close() })
	r, err := private.Create("p", map[string]string{"app/a.yaml": configMap("a", "1")})
	if err != nil {
		t.Fatal(err)
	}
	w.app("web", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.condition("web", v1alpha1.ConditionComparisonError, r.URL())
	w.misses(missed{input: engine.InputSecret, object: r.URL()}, func() {
		secret := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata":   map[string]any{"name": "creds", "labels": map[string]any{"argocd.argoproj.io/secret-type": "repo-creds"}},
			"stringData": map[string]any{"url": private.Base(), "username": "robot", "password": "right"},
		}}
		secrets := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(w.control)
		if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// misses makes the engine deaf to the input, changes it, and expects the audit to say so; the audit's own wake-up mends it.
func (w *world) misses(c missed, change func()) {
	w.t.Helper()
	w.until("quiet", func() (string, bool) {
		judged, found := w.engine.Audit(w.t.Context())
		return fmt.Sprint(judged, found), judged > 0 && len(found) == 0
	})
	w.deaf = true
	w.engine.Deafen(c.input)
	change()
	var found []engine.Mismatch
	w.until("audit sees that "+string(c.input)+" is missed", func() (string, bool) {
		_, found = w.engine.Audit(w.t.Context())
		return fmt.Sprint(found), slices.ContainsFunc(found, func(m engine.Mismatch) bool {
			return m.Input == c.input && strings.Contains(m.Object, c.object)
		})
	})
	if n := w.metric("lockstep_audit_mismatch_total", "input", string(c.input)); n < 1 {
		w.t.Errorf("metric of %s is %v", c.input, n)
	}
	w.until("mended", func() (string, bool) {
		judged, found := w.engine.Audit(w.t.Context())
		return fmt.Sprint(judged, found), judged > 0 && len(found) == 0
	})
}

// The audit runs by itself, and a steady state shows nothing.
func TestAuditRunsByItself(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.tune = func(o *engine.Options) { o.Audit.Interval = 10 * time.Millisecond }
	w.start()
	r := w.repo("r", map[string]string{"web/cm.yaml": configMap("one", "1"), "web/d.yaml": deployment("d", "registry.k8s.io/pause:3.9", 1)})
	w.app("web", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "web"})
	w.settled("web", "")
	renders := w.metric("lockstep_renders_total", "result", "ok")
	w.until("an audit", func() (string, bool) {
		n := w.metric("lockstep_audits_total", "", "")
		return fmt.Sprint(n), n >= 1
	})
	if n := w.metric("lockstep_renders_total", "result", "ok"); n != renders {
		t.Errorf("audits count as renderings: %v, before %v", n, renders)
	}
}

func patch(w *world, in dynamic.ResourceInterface, name, body string) {
	w.t.Helper()
	kind := types.MergePatchType
	if strings.HasPrefix(body, "[") {
		kind = types.JSONPatchType
	}
	if _, err := in.Patch(w.t.Context(), name, kind, []byte(body), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) projects() dynamic.ResourceInterface {
	return w.client.Resource(v1alpha1.AppProjects()).Namespace(w.control)
}

// metric is the value of a counter, with the label where there is one.
func (w *world) metric(name, label, value string) float64 {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || len(m.GetLabel()) == 1 && m.GetLabel()[0].GetName() == label && m.GetLabel()[0].GetValue() == value) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// limited makes a project that its test may change.
func (w *world) limited() {
	p := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.AppProjectKind, "metadata": map[string]any{"name": "limited"},
		"spec": map[string]any{
			"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}},
			"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
		},
	}}
	if _, err := w.projects().Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
