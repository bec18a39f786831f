package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
)

// sick gives app a status in which much is not fine.
func sick(app *v1alpha1.Application) {
	healthy(app)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now().Add(-d)} }
	app.Spec.SyncPolicy = &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true}}
	s := &app.Status
	s.ReconciledAt = ago(2 * time.Minute)
	s.Sync.Status = v1alpha1.SyncOutOfSync
	s.Health = v1alpha1.AppHealthStatus{
		Status: v1alpha1.HealthDegraded, Message: "Image shop/web:9 is not in the registry.", LastTransitionTime: ago(5 * time.Minute),
	}
	s.Conditions = []v1alpha1.ApplicationCondition{
		{Type: v1alpha1.ConditionRepeatedResourceWarning, Message: "ConfigMap/shop/web is declared twice.", LastTransitionTime: ago(time.Hour)},
	}
	s.OperationState = &v1alpha1.OperationState{
		Phase: v1alpha1.OperationSucceeded, Message: "2 objects applied", StartedAt: *ago(4 * time.Minute), FinishedAt: ago(3 * time.Minute),
		Operation: v1alpha1.Operation{InitiatedBy: v1alpha1.OperationInitiator{Automated: true}},
	}
	s.Summary.Images = []string{"shop/web:9"}
	s.Resources = []v1alpha1.ResourceStatus{
		{Version: "v1", Kind: "Service", Namespace: "shop", Name: "web", Status: v1alpha1.SyncSynced, Health: &v1alpha1.HealthStatus{Status: v1alpha1.HealthHealthy}},
		{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "old", Status: v1alpha1.SyncOutOfSync, RequiresPruning: true},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web", Status: v1alpha1.SyncSynced,
			Health: &v1alpha1.HealthStatus{Status: v1alpha1.HealthDegraded, Message: "Image shop/web:9 is not in the registry."}},
	}
}

func TestAppGet(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", sick)
	want := c.namespace + `/shop is Degraded and OutOfSync.
Image shop/web:9 is not in the registry.

Project      default
Source       https://git.example/shop.git deploy at main
Destination  https://kubernetes.default.svc shop
Policy       automated, prune, self-heal
Sync         OutOfSync with 4be0c11, compared 2m ago
Health       Degraded for 5m
Operation    Succeeded 3m ago, by the automated policy: 2 objects applied
Images       shop/web:9

CONDITION                 AGE   MESSAGE
RepeatedResourceWarning   60m   ConfigMap/shop/web is declared twice.

OBJECT            NAMESPACE   NAME   SYNC        HEALTH     MESSAGE
Deployment.apps   shop        web    Synced      Degraded   Image shop/web:9 is not in the registry.
ConfigMap         shop        old    OutOfSync              left the source
Service           shop        web    Synced      Healthy
`
	r := c.lockstep("app", "get", "shop")
	r.want(t, cli.CodeOK)
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}

	t.Run("namespace/name", func(t *testing.T) {
		lockstep("app", "get", c.namespace+"/shop", "--kubeconfig", c.kubeconfig).want(t, cli.CodeOK, "Degraded")
	})
	t.Run("yaml", func(t *testing.T) {
		r := c.lockstep("app", "get", "shop", "-o", "yaml")
		var app v1alpha1.Application
		if err := yaml.UnmarshalStrict([]byte(r.stdout), &app); err != nil {
			t.Fatal(err)
		}
		if app.Name != "shop" || app.Spec.Source.Path != "deploy" || len(app.ManagedFields) > 0 {
			t.Errorf("yaml is %s", r.stdout)
		}
	})
	t.Run("refresh", func(t *testing.T) {
		c.lockstep("app", "get", "shop", "--hard-refresh", "-o", "yaml").want(t, cli.CodeOK, "argocd.argoproj.io/refresh: hard")
	})
	t.Run("missing", func(t *testing.T) {
		r := c.lockstep("app", "get", "nope")
		r.want(t, cli.CodeNotFound, "application "+c.namespace+"/nope: not found")
		if r.stdout != "" {
			t.Errorf("an error on stdout: %s", r.stdout)
		}
	})
	t.Run("unknown format", func(t *testing.T) {
		c.lockstep("app", "get", "shop", "-o", "toml").want(t, cli.CodeUsage, "wide, json, yaml, name")
	})
}

func TestAppHistory(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", func(app *v1alpha1.Application) {
		started := metav1.NewTime(now().Add(-9 * time.Second))
		app.Status.History = []v1alpha1.RevisionHistory{
			{ID: 0, Revision: strings.Repeat("a", 40), Source: *app.Spec.Source, DeployedAt: metav1.NewTime(now()), DeployStartedAt: &started},
			{ID: 1, Revision: strings.Repeat("b", 40), Source: *app.Spec.Source, DeployedAt: metav1.NewTime(now()), InitiatedBy: v1alpha1.OperationInitiator{Username: "ada"}},
		}
	})
	want := `ID   DEPLOYED               TOOK   REVISION   BY
0    2026-05-04T12:00:00Z   9s     aaaaaaa
1    2026-05-04T12:00:00Z          bbbbbbb    ada
`
	r := c.lockstep("app", "history", "shop")
	r.want(t, cli.CodeOK)
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	c.lockstep("app", "history", "shop", "-o", "wide").want(t, cli.CodeOK, strings.Repeat("b", 40), "deploy at main")
	c.create(t, "new", nil)
	c.lockstep("app", "history", "new", "-o", "json").want(t, cli.CodeOK, "[]")
	c.lockstep("app", "history", "new").want(t, cli.CodeOK, "was not deployed yet")
}
