package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/local"
	"github.com/lockstep-cd/lockstep/test/program"
)

// patience is how long anything may take to converge after its fault has ended.
const patience = 2 * time.Minute

// bed is a Lockstep on a cluster, with a repository and a recorder.
type bed struct {
	t             *testing.T
	cluster       *env.Kube
	client        dynamic.Interface
	control, dest string
	git           *gitserver.Server
	repo          *gitserver.Repo
	dir           string
	lockstep      *local.Lockstep
	// seen is what happens to what the applications declare, apps what happens to them.
	seen, apps *recorder
	// version of the content that was pushed last.
	version int
}

func newBed(t *testing.T, cluster *env.Kube) *bed {
	t.Helper()
	program.Use(t)
	b := &bed{t: t, cluster: cluster, dir: t.TempDir(), control: env.Namespace(t, cluster), dest: env.Namespace(t, cluster)}
	config := cluster.REST()
	config.QPS = -1
	var err error
	if b.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if _, err := install.All(t.Context(), b.client, install.Options{Namespace: b.control}); err != nil {
		t.Fatal(err)
	}
	if b.git, err = gitserver.Start(gitserver.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.git.Close() })
	if b.repo, err = b.git.Create("content", content(b.version)); err != nil {
		t.Fatal(err)
	}
	b.apps = record(t, b.client, b.control, map[string]schema.GroupVersionResource{"Application": v1alpha1.Applications()})
	b.seen = record(t, b.client, b.dest, map[string]schema.GroupVersionResource{
		"ConfigMap":  {Version: "v1", Resource: "configmaps"},
		"Pod":        {Version: "v1", Resource: "pods"},
		"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
		"Job":        {Group: "batch", Version: "v1", Resource: "jobs"},
	})
	t.Cleanup(func() {
		if b.lockstep != nil {
			_ = b.lockstep.Stop()
		}
		if t.Failed() {
			t.Log(local.Tail(filepath.Join(b.dir, "lockstep.log"), 60))
		}
	})
	b.start()
	return b
}

// start starts Lockstep on the bed's data directory.
func (b *bed) start() {
	b.t.Helper()
	b.must(b.run(b.dir, "lockstep-0"))
}

// alive starts a process again that has ended, as a kubelet or systemd does.
func (b *bed) alive() {
	b.t.Helper()
	if b.lockstep != nil {
		select {
		case <-b.lockstep.Exited():
			b.t.Logf("started again: %v", b.lockstep.Ended())
		default:
			return
		}
	}
	b.start()
}

// run starts Lockstep with its data below dir, and waits until it is ready.
func (b *bed) run(dir, identity string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.lockstep, err = local.StartLockstep(b.t.Context(), local.LockstepOptions{
		Binary: self, Kubeconfig: b.cluster.Kubeconfig(), Namespace: b.control, Dir: dir,
		Flags: []string{"--poll-interval", "1s", "--identity", identity},
	})
	return err
}

func (b *bed) data() string { return filepath.Join(b.dir, "data") }

// app makes an application with automated sync, prune and self-heal of what the repository has.
func (b *bed) app(name string) {
	b.t.Helper()
	a := &v1alpha1.Application{}
	a.APIVersion, a.Kind, a.Name, a.Namespace = v1alpha1.GroupVersion().String(), v1alpha1.ApplicationKind, name+"-"+b.control, b.control
	a.Spec = v1alpha1.ApplicationSpec{
		Project: "default", Source: &v1alpha1.ApplicationSource{RepoURL: b.repo.URL(), Path: name, TargetRevision: "main"},
		Destination: v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: b.dest},
		SyncPolicy:  &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true}},
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		b.t.Fatal(err)
	}
	delete(u, "status")
	_, err = b.client.Resource(v1alpha1.Applications()).Namespace(b.control).Create(b.t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

// push commits the next version of the content and gives its commit.
func (b *bed) push() string {
	b.t.Helper()
	b.version++
	commit, err := b.repo.Commit(content(b.version), fmt.Sprintf("version %d", b.version))
	if err != nil {
		b.t.Fatal(err)
	}
	return commit
}

// converged waits until every application is Synced to the commit and Healthy, with an operation that has ended well. A
// process that has ended by itself, since it could not renew its lease, is started again.
func (b *bed) converged(commit string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for {
		b.apps.mu.Lock()
		changed := b.apps.changed
		b.apps.mu.Unlock()
		missing := b.missing(ctx, commit)
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("not in step with %.7s within %s: %s", commit, patience, missing)
		case <-b.lockstep.Exited():
			b.alive()
		case <-changed:
		case <-time.After(time.Second): // the API server may have been away for the last look
		}
	}
}

func (b *bed) missing(ctx context.Context, commit string) string {
	apps, err := b.list(ctx)
	if err != nil {
		return err.Error()
	}
	for _, app := range apps {
		s := app.Status
		op := s.OperationState
		switch {
		case op == nil:
			return app.Name + ": nothing was synced"
		case op.Phase != v1alpha1.OperationSucceeded, s.Sync.Status != v1alpha1.SyncSynced, s.Health.Status != v1alpha1.HealthHealthy,
			s.Sync.Revision != commit:
			return fmt.Sprintf("%s: operation %s: %s, %s at %.7s, %s, %v", app.Name, op.Phase, op.Message, s.Sync.Status, s.Sync.Revision, s.Health.Status, s.Conditions)
		}
	}
	return ""
}

func (b *bed) list(ctx context.Context) ([]*v1alpha1.Application, error) {
	list, err := b.client.Resource(v1alpha1.Applications()).Namespace(b.control).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	apps := make([]*v1alpha1.Application, len(list.Items))
	for i, u := range list.Items {
		apps[i] = &v1alpha1.Application{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, apps[i]); err != nil {
			return nil, err
		}
	}
	return apps, nil
}

// content is a version of two applications: one with hooks, waves, and one object that the next version drops; one plain.
func content(version int) map[string]string {
	text := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	return map[string]string{
		"waves/before.yaml": hook("before", "PreSync"),
		"waves/after.yaml":  hook("after", "PostSync"),
		"waves/first.yaml":  text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\ndata: {version: \"%d\"}\n", version),
		"waves/round.yaml":  text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: round-%d}\n", version),
		"waves/web.yaml": text(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {argocd.argoproj.io/sync-wave: "1"}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, version: "%d"}}
    spec: {containers: [{name: c, image: registry.k8s.io/pause:3.9}]}
`, version),
		"waves/last.yaml":  text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: last, annotations: {argocd.argoproj.io/sync-wave: \"2\"}}\ndata: {version: \"%d\"}\n", version),
		"plain/a.yaml":     text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {version: \"%d\"}\n", version),
		"chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 0.1.0\n",
		// It takes a while to render.
		"chart/templates/a.yaml": text("{{ $n := 0 }}{{ range until 300000 }}{{ $n = add $n 1 }}{{ end }}"+
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {version: \"%d\", n: {{ $n | quote }}}\n", version),
		"plain/steady.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: steady}\ndata: {k: v}\n",
	}
}

func hook(name, phase string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {argocd.argoproj.io/hook: %s}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {dev.lockstep/run-for: 300ms}}
    spec: {restartPolicy: Never, containers: [{name: c, image: registry.k8s.io/pause:3.9}]}
`, name, phase)
}

// judge asks what must hold after any fault: from a mark on, nothing was deleted but what the version of the content
// dropped, and each hook ran once.
func (b *bed) judge(mark int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	b.must(b.seen.caughtUp(ctx))
	dropped := fmt.Sprintf("round-%d", b.version-1)
	made := map[string]int{}
	for _, h := range b.seen.since(mark) {
		switch {
		case h.kind == "Pod" && h.verb == "added":
			if job := h.object.GetLabels()["batch.kubernetes.io/job-name"]; job != "" {
				made["pod of "+job]++
			}
		case h.kind == "Job" && h.verb == "added":
			made["job "+h.name]++
		case h.kind == "Job" && h.verb == "deleted":
			if made["job "+h.name] > 0 {
				b.t.Errorf("hook %s was deleted in the sync that made it", h.name)
			}
		case h.verb == "deleted" && h.kind != "Pod" && h.name != dropped:
			b.t.Errorf("%s/%s was deleted, and Git still has it", h.kind, h.name)
		}
	}
	for _, name := range []string{"before", "after"} {
		if made["job "+name] != 1 || made["pod of "+name] != 1 {
			b.t.Errorf("hook %s was made %d times and ran %d times in one sync", name, made["job "+name], made["pod of "+name])
		}
	}
	if b.t.Failed() {
		b.t.Log(b.seen.text(mark))
	}
}
