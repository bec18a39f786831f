package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
)

func TestAppSync(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", func(app *v1alpha1.Application) {
		healthy(app)
		app.Spec.SyncPolicy = &v1alpha1.SyncPolicy{
			SyncOptions: v1alpha1.SyncOptions{"CreateNamespace=true"}, Retry: &v1alpha1.RetryStrategy{Limit: 3},
		}
	})
	r := c.start(t, "app", "sync", "shop", "--revision", "v2", "--prune", "--force",
		"--resource", "apps:Deployment:web", "--resource", ":Service:shop/web")
	op := c.asked(t, "shop")
	want := &v1alpha1.SyncOperation{
		Revision: "v2", Prune: true, SyncOptions: v1alpha1.SyncOptions{"CreateNamespace=true"},
		SyncStrategy: &v1alpha1.SyncStrategy{Hook: &v1alpha1.SyncStrategyHook{SyncStrategyApply: v1alpha1.SyncStrategyApply{Force: true}}},
		Resources: []v1alpha1.SyncOperationResource{
			{Group: "apps", Kind: "Deployment", Name: "web"}, {Kind: "Service", Namespace: "shop", Name: "web"},
		},
	}
	if diff := cmp.Diff(want, op.Sync); diff != "" {
		t.Errorf("the operation (-want +got):\n%s", diff)
	}
	if op.InitiatedBy.Username == "" || op.Retry.Limit != 3 {
		t.Errorf("asked for by %q with %d retries", op.InitiatedBy.Username, op.Retry.Limit)
	}
	c.carry(t, "shop", v1alpha1.OperationState{Operation: *op, Phase: v1alpha1.OperationRunning, Message: "applying 2 objects"})
	until(t, "the progress", func() bool { return strings.Contains(r.errs.String(), "/shop: Running: applying 2 objects") })
	c.carry(t, "shop", v1alpha1.OperationState{
		Operation: *op, Phase: v1alpha1.OperationSucceeded, Message: "2 objects applied",
		SyncResult: &v1alpha1.SyncOperationResult{Resources: []*v1alpha1.ResourceResult{
			{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web", Status: v1alpha1.ResultSynced, Message: "configured"},
			{Version: "v1", Kind: "Service", Namespace: "shop", Name: "web", Status: v1alpha1.ResultSynced, Message: "unchanged"},
		}},
	})
	got := r.wait()
	got.want(t, cli.CodeOK, "/shop: Succeeded: 2 objects applied")
	wantTable := `OBJECT            NAMESPACE   NAME   RESULT   MESSAGE
Deployment.apps   shop        web    Synced   configured
Service           shop        web    Synced   unchanged
`
	if diff := cmp.Diff(wantTable, got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestAppSyncEndings(t *testing.T) {
	c := newCluster(t)
	later := metav1.NewTime(now().Add(time.Hour))
	cases := []struct {
		name string
		// act is what the controller, or somebody else, does with the operation.
		act  func(t *testing.T, name string, op v1alpha1.Operation)
		code int
		text string
	}{
		{"fails", func(t *testing.T, name string, op v1alpha1.Operation) {
			c.carry(t, name, v1alpha1.OperationState{Operation: op, Phase: v1alpha1.OperationFailed, Message: "Deployment/web: not permitted"})
		}, cli.CodeSyncFailed, "the sync ended as Failed: Deployment/web: not permitted"},
		{"replaced", func(t *testing.T, name string, _ v1alpha1.Operation) {
			c.carry(t, name, v1alpha1.OperationState{Phase: v1alpha1.OperationRunning, StartedAt: later})
		}, cli.CodeReplaced, "another operation took the place"},
		{"deleted", func(t *testing.T, name string, _ v1alpha1.Operation) {
			if err := c.apps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, cli.CodeNotFound, "deleted before its sync ended"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			c.create(t, test.name, healthy)
			r := c.start(t, "app", "sync", test.name)
			test.act(t, test.name, *c.asked(t, test.name))
			r.wait().want(t, test.code, test.text)
		})
	}
}

func TestAppSyncWithoutWaiting(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", healthy)
	c.lockstep("app", "sync", "shop", "--async", "--strategy", "apply").want(t, cli.CodeOK, "/shop: sync asked for")
	if op := c.asked(t, "shop"); op.Sync.SyncStrategy.Apply == nil || op.Sync.SyncStrategy.Hook != nil {
		t.Errorf("strategy %+v", op.Sync.SyncStrategy)
	}

	t.Run("a second one is refused while the first waits", func(t *testing.T) {
		c.lockstep("app", "sync", "shop").want(t, cli.CodeRefused, "another operation is in progress", "waits to be taken up")
	})
	t.Run("and can be withdrawn", func(t *testing.T) {
		c.lockstep("app", "terminate", "shop").want(t, cli.CodeOK, "asked to end")
		c.lockstep("app", "terminate", "shop").want(t, cli.CodeRefused, "no operation is running")
	})
	t.Run("nobody takes it up in time", func(t *testing.T) {
		c.lockstep("app", "sync", "shop", "--timeout", "1500ms").want(t, cli.CodeTimeout, "not within 1.5s", "the sync goes on")
	})
}

func TestAppTerminateARunningOperation(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", func(app *v1alpha1.Application) {
		healthy(app)
		app.Status.OperationState = &v1alpha1.OperationState{Phase: v1alpha1.OperationRunning, StartedAt: metav1.NewTime(now())}
	})
	c.lockstep("app", "sync", "shop").want(t, cli.CodeRefused, "runs since 2026-05-04T12:00:00Z")
	c.lockstep("app", "terminate", "shop").want(t, cli.CodeOK)
	c.lockstep("app", "get", "shop", "-o", "yaml").want(t, cli.CodeOK, "phase: Terminating")
}

func TestAppSyncSeveral(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"a", "b"} {
		c.create(t, name, func(app *v1alpha1.Application) {
			healthy(app)
			app.Labels = map[string]string{"team": "shop"}
		})
	}
	c.create(t, "other", healthy)
	r := c.start(t, "app", "sync", "-l", "team=shop", "-o", "name")
	for _, name := range []string{"a", "b"} {
		c.carry(t, name, v1alpha1.OperationState{Operation: *c.asked(t, name), Phase: v1alpha1.OperationSucceeded})
	}
	got := r.wait()
	got.want(t, cli.CodeOK, c.namespace+"/a\n", c.namespace+"/b\n")
	if strings.Contains(got.stdout, "other") {
		t.Errorf("an application that is not selected was synced:\n%s", got.stdout)
	}
	c.lockstep("app", "sync", "a", "nope", "--async").want(t, cli.CodeNotFound, "/a: sync asked for", "/nope: not found")
	c.lockstep("app", "sync", "-l", "team=nobody").want(t, cli.CodeNotFound, "no application in namespace")
}

// A folder stands in for the source: it is rendered here, with the options of the source, and sent without the values of
// Secrets. What deletes something is asked for twice.
func TestAppSyncLocal(t *testing.T) {
	c := newCluster(t)
	dir := checkout(t, map[string]string{
		"kustomization.yaml": "resources: [cm.yaml, secret.yaml]\n", "cm.yaml": newMap, "secret.yaml": secretText,
	})
	c.create(t, "shop", func(app *v1alpha1.Application) {
		healthy(app)
		app.Spec.Source.Kustomize = &v1alpha1.ApplicationSourceKustomize{NamePrefix: "pre-"}
	})
	r := c.lockstep("app", "sync", "shop", "--local", dir, "--async")
	r.want(t, cli.CodeOK, "the values of a Secret are not sent")
	op := c.asked(t, "shop")
	if len(op.Sync.Manifests) != 2 || !strings.Contains(op.Sync.Manifests[0], `"name":"pre-new"`) {
		t.Errorf("manifests %v", op.Sync.Manifests)
	}
	if all := strings.Join(op.Sync.Manifests, " "); strings.Contains(all, "hunter2") || strings.Contains(all, "aHVudGVyMg") || !strings.Contains(all, `"pre-key"`) {
		t.Errorf("the Secret was sent as %s", all)
	}
	c.create(t, "other", healthy)
	c.lockstep("app", "sync", "other", "--local", dir, "--prune").want(t, cli.CodeUsage, "will be deleted", "--yes")
	c.lockstep("app", "sync", "other", "shop", "--local", dir).want(t, cli.CodeUsage, "one application")
	c.lockstep("app", "sync", "other", "--local", dir, "--revision", "x").want(t, cli.CodeUsage, "local", "revision")
	c.lockstep("app", "sync", "other", "--local", dir, "--resource", "apps:Deployment:web").want(t, cli.CodeUsage, "declares none of the objects")
	c.lockstep("app", "sync", "other", "--local", dir+"/nowhere").want(t, cli.CodeNotFound, "nowhere")
	c.lockstep("app", "sync", "other", "--local", dir, "--prune", "--yes", "--async", "--resource", ":ConfigMap:new").want(t, cli.CodeOK, "sync asked for")
	if op := c.asked(t, "other"); len(op.Sync.Manifests) != 1 || !op.Sync.Prune {
		t.Errorf("asked for %+v", op.Sync)
	}
}

func TestAppSyncOfSeveralSources(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", func(app *v1alpha1.Application) {
		healthy(app)
		app.Spec.Sources = []v1alpha1.ApplicationSource{{RepoURL: "https://git.example/a", Path: "."}, {RepoURL: "https://git.example/b", Path: "."}}
		app.Spec.Source = nil
	})
	c.lockstep("app", "sync", "shop", "--revision", "v2").want(t, cli.CodeUsage, "2 sources", "POSITION:REVISION")
	c.lockstep("app", "sync", "shop", "--revision", "2:v2", "--async").want(t, cli.CodeOK)
	if diff := cmp.Diff([]string{"", "v2"}, c.asked(t, "shop").Sync.Revisions); diff != "" {
		t.Errorf("revisions (-want +got)\n%s", diff)
	}
}
