package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
)

func TestAppList(t *testing.T) {
	c := newCluster(t)
	c.lockstep("app", "list").want(t, cli.CodeOK, "No application in namespace "+c.namespace)
	c.create(t, "cart", func(app *v1alpha1.Application) {
		healthy(app)
		app.Labels = map[string]string{"team": "shop"}
	})
	c.create(t, "broken", func(app *v1alpha1.Application) {
		app.Spec.Project = "customs"
		app.Status.Sync.Status = v1alpha1.SyncUnknown
		app.Status.Health.Status = v1alpha1.HealthHealthy
		app.Status.Conditions = []v1alpha1.ApplicationCondition{{
			Type: v1alpha1.ConditionComparisonError, Message: "values.yaml:41:\nvalue starts with *", LastTransitionTime: &metav1.Time{Time: now()},
		}}
	})

	table := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	head := "NAME     PROJECT   SYNC      HEALTH    OPERATION   REVISION   CAUSE"
	broken := "broken   customs   Unknown   Healthy                          values.yaml:41: value starts with *"
	cart := "cart     default   Synced    Healthy               4be0c11"
	cases := []struct {
		name string
		args []string
		want string
	}{
		{"table", nil, table(head, broken, cart)},
		{"names", []string{"-o", "name"}, table(c.namespace+"/broken", c.namespace+"/cart")},
		{"selector", []string{"-l", "team=shop", "-o", "name"}, table(c.namespace + "/cart")},
		{"project", []string{"--project", "customs", "-o", "name"}, table(c.namespace + "/broken")},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			r := c.lockstep(append([]string{"app", "list"}, test.args...)...)
			r.want(t, cli.CodeOK)
			if diff := cmp.Diff(test.want, r.stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("wide", func(t *testing.T) {
		c.lockstep("app", "list", "-o", "wide").want(t, cli.CodeOK,
			"https://git.example/shop.git deploy at main", "https://kubernetes.default.svc shop")
	})
	t.Run("json", func(t *testing.T) {
		r := c.lockstep("app", "list", "-o", "json")
		r.want(t, cli.CodeOK)
		var list v1alpha1.ApplicationList
		if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 2 || list.Kind != "ApplicationList" || list.Items[1].Kind != "Application" {
			t.Errorf("%d items of kind %q", len(list.Items), list.Kind)
		}
	})
	t.Run("all namespaces", func(t *testing.T) {
		lockstep("app", "list", "-A", "--kubeconfig", c.kubeconfig).want(t, cli.CodeOK, c.namespace+"/cart")
	})
}

func TestAppListWatch(t *testing.T) {
	c := newCluster(t)
	c.create(t, "cart", healthy)
	r := c.start(t, "app", "list", "--watch")
	until(t, "the first rows", func() bool { return strings.Contains(r.out.String(), "cart") })
	c.patch(t, "cart", map[string]any{"status": map[string]any{"sync": map[string]any{"status": "OutOfSync"}}})
	until(t, "the changed row", func() bool { return strings.Contains(r.out.String(), "OutOfSync") })
	if err := c.apps.Delete(t.Context(), "cart", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the deletion", func() bool { return strings.Contains(r.errs.String(), "/cart is deleted.") })
	got := r.end()
	got.want(t, cli.CodeOK)
	if n := strings.Count(got.stdout, "NAME"); n != 1 {
		t.Errorf("the head is printed %d times:\n%s", n, got.stdout)
	}
}
