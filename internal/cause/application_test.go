package cause

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

func application(change func(*v1alpha1.Application)) *v1alpha1.Application {
	app := &v1alpha1.Application{}
	app.Name, app.Namespace, app.UID = "shop", "lockstep", "u-shop"
	app.Status.Sync.Status, app.Status.Health.Status = v1alpha1.SyncOutOfSync, v1alpha1.HealthHealthy
	change(app)
	return app
}

func condition(kind v1alpha1.ApplicationConditionType, message string) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		app.Status.Conditions = append(app.Status.Conditions, v1alpha1.ApplicationCondition{Type: kind, Message: message})
	}
}

func failed(results ...*v1alpha1.ResourceResult) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		app.Status.OperationState = &v1alpha1.OperationState{
			Phase: v1alpha1.OperationFailed, Message: "1 of 2 objects could not be synced",
			SyncResult: &v1alpha1.SyncOperationResult{Resources: results},
		}
	}
}

func automatic(heal bool) func(*v1alpha1.Application) {
	return func(app *v1alpha1.Application) {
		app.Spec.SyncPolicy = &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{SelfHeal: heal}}
		app.Status.Resources = []v1alpha1.ResourceStatus{
			{Kind: "Service", Namespace: "shop", Name: "web", Status: v1alpha1.SyncOutOfSync}, {Kind: "Secret", Name: "x", Status: v1alpha1.SyncSynced},
		}
	}
}

func TestApplications(t *testing.T) {
	const comparison, spec = v1alpha1.ConditionComparisonError, v1alpha1.ConditionInvalidSpecError
	refused := &v1alpha1.ResourceResult{Kind: "Deployment", Namespace: "shop", Name: "web", Status: v1alpha1.ResultSyncFailed, Message: `Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`}
	odd := &v1alpha1.ResourceResult{Kind: "Deployment", Namespace: "shop", Name: "web", Status: v1alpha1.ResultSyncFailed, Message: "odd"}
	hook := &v1alpha1.ResourceResult{Kind: "Job", Namespace: "shop", Name: "migrate", HookType: "PreSync", HookPhase: v1alpha1.OperationFailed, Message: "Job failed"}
	fine := &v1alpha1.ResourceResult{Kind: "Service", Namespace: "shop", Name: "web", Status: v1alpha1.ResultSynced}
	for name, c := range map[string]struct {
		app  func(*v1alpha1.Application)
		want map[Reason]string
	}{
		"rendering":   {condition(comparison, "app/x.yaml:3: is no YAML"), map[Reason]string{RenderingFailed: "app/x.yaml:3: is no YAML"}},
		"credentials": {condition(comparison, "https://git.example/shop: authentication needed"), map[Reason]string{SourceCredentials: "https://git.example/shop: authentication needed"}},
		"away":        {condition(comparison, "https://git.example/shop: repository unreachable: timed out"), map[Reason]string{SourceAway: "https://git.example/shop: repository unreachable: timed out"}},
		"missing":     {condition(comparison, "https://git.example/shop: repository not found"), map[Reason]string{SourceMissing: "https://git.example/shop: repository not found"}},
		"revision":    {condition(comparison, "v9: unknown revision"), map[Reason]string{RevisionUnknown: "v9: unknown revision"}},
		"project":     {condition(spec, "repository x is not permitted by the project p; add it to sourceRepos"), map[Reason]string{ProjectRefusal: "repository x is not permitted by the project p; add it to sourceRepos"}},
		"window":      {condition(v1alpha1.ConditionSyncError, "project p has sync windows"), map[Reason]string{SyncWindow: "project p has sync windows"}},
		"spec":        {condition(spec, "spec.source: is missing"), map[Reason]string{SpecInvalid: "spec.source: is missing"}},
		"cycle":       {condition(spec, "applications wait for each other: a → b → a"), map[Reason]string{DependencyCycle: "applications wait for each other: a → b → a"}},
		"kind":        {condition(v1alpha1.ConditionSyncError, "the cluster does not serve this kind"), map[Reason]string{KindMissing: "the cluster does not serve this kind"}},
		"deletion":    {condition(v1alpha1.ConditionDeletionError, "blocked"), map[Reason]string{DeletionBlocked: "blocked"}},
		"warnings keep nothing from happening": {func(app *v1alpha1.Application) {
			condition(v1alpha1.ConditionSharedResourceWarning, "shared")(app)
			app.Status.Sync.Status = v1alpha1.SyncSynced
		}, map[Reason]string{}},
		"a refusal by the API server": {failed(fine, refused), map[Reason]string{OwnershipConflict: "Deployment shop/web: kubectl owns a field that it sets: .spec.replicas"}},
		"a refusal in unknown words":  {failed(odd), map[Reason]string{SyncFailed: "Deployment shop/web: odd"}},
		"a hook":                      {failed(hook), map[Reason]string{HookFailed: "PreSync hook Job shop/migrate failed: Job failed"}},
		"a sync that failed":          {failed(fine), map[Reason]string{SyncFailed: "1 of 2 objects could not be synced"}},
		"a sync that failed before it came into step": {func(app *v1alpha1.Application) {
			failed(odd)(app)
			app.Status.Sync.Status = v1alpha1.SyncSynced
		}, map[Reason]string{}},
		"a sync that waits": {func(app *v1alpha1.Application) {
			app.Status.OperationState = &v1alpha1.OperationState{Phase: v1alpha1.OperationRunning, Message: "waits for Job shop/migrate"}
		}, map[Reason]string{Waiting: "waits for Job shop/migrate"}},
		"by hand": {func(app *v1alpha1.Application) {
			automatic(false)(app)
			app.Spec.SyncPolicy = nil
		}, map[Reason]string{OutOfStep: "Application lockstep/shop: it differs from its source and is synced by hand: Service shop/web"}},
		"no healing": {automatic(false), map[Reason]string{OutOfStep: "Application lockstep/shop: the cluster was changed, and it does not heal itself: Service shop/web"}},
		"healing":    {automatic(true), map[Reason]string{OutOfStep: "Application lockstep/shop: it is about to be brought into step: Service shop/web"}},
		"not pruning": {func(app *v1alpha1.Application) {
			app.Status.Resources = []v1alpha1.ResourceStatus{{Kind: "Service", Status: v1alpha1.SyncOutOfSync, RequiresPruning: true}}
		}, map[Reason]string{OutOfStep: "Application lockstep/shop: objects that left the source are still there, since it does not prune by itself"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[Reason]string{}
			for _, found := range OfApplication(application(c.app), Input{}) {
				got[found.Reason] = found.Sentence
				if found.Next == "" || len(found.Chain) == 0 || found.Chain[0].Object != "Application lockstep/shop" {
					t.Errorf("no next step, or no chain from the application: %+v", found)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What the cluster shows of a hook says more than the sync does.
func TestHookWithItsPods(t *testing.T) {
	app := application(failed(&v1alpha1.ResourceResult{Kind: "Job", Namespace: "shop", Name: "migrate", HookType: "PreSync", HookPhase: v1alpha1.OperationFailed, Message: "Job failed"}))
	in := Input{Subtree: []Object{
		parse(t, object("Job", "batch/v1", "migrate", "", `health: Degraded, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`)),
		parse(t, object("Pod", "v1", "migrate-x8x2p", "migrate", `status: {phase: Failed, containerStatuses: [{name: app, state: {terminated: {exitCode: 2, reason: Error}}}]}`)),
	}, LastLine: func(_, _, _ string) string { return "no table" }}
	got := OfApplication(app, in)
	want := []Cause{{
		Reason: HookFailed, Sentence: "PreSync hook Job shop/migrate failed: container app stops with exit code 2; its last line: no table",
		Next: "read the container's log (kubectl logs --previous)",
		Chain: []Link{
			{"Application lockstep/shop", "sync Failed"}, {"Job shop/migrate", "Degraded"}, {"Pod shop/migrate-…", ""},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
