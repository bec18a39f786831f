package cli_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cli"
)

func TestAppWait(t *testing.T) {
	c := newCluster(t)
	c.create(t, "fine", healthy)
	c.create(t, "sick", sick)
	c.create(t, "moved", func(app *v1alpha1.Application) {
		healthy(app)
		app.Status.Sync.ComparedTo.Source.TargetRevision = "v1"
	})
	cases := []struct {
		name string
		args []string
		code int
		text string
	}{
		{"all is so already", []string{"fine"}, cli.CodeOK, "/fine: as wanted"},
		{"only what was asked for", []string{"sick", "--operation"}, cli.CodeOK, "as wanted"},
		{"time is over and it is degraded", []string{"sick", "--timeout", "1500ms"}, cli.CodeDegraded, "sick (OutOfSync, Degraded)"},
		{"time is over", []string{"sick", "fine", "--sync", "--timeout", "1500ms"}, cli.CodeTimeout, "not within 1.5s"},
		{"a status of another source does not count", []string{"moved", "--sync", "--timeout", "1500ms"}, cli.CodeTimeout, "compared with an earlier spec"},
		{"missing", []string{"fine", "nope"}, cli.CodeNotFound, "/nope: not found"},
		{"gone already", []string{"nope", "--delete"}, cli.CodeOK, ""},
		{"not gone in time", []string{"fine", "--delete", "--timeout", "1500ms"}, cli.CodeTimeout, "there"},
		{"contradiction", []string{"fine", "--delete", "--sync"}, cli.CodeUsage, "--delete excludes"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			c.lockstep(append([]string{"app", "wait"}, test.args...)...).want(t, test.code, test.text)
		})
	}
}

func TestAppWaitSeesChanges(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", sick)
	r := c.start(t, "app", "wait", "shop", "-o", "name")
	until(t, "what it waits for", func() bool { return strings.Contains(r.errs.String(), "waits: OutOfSync, Degraded: Image shop/web:9") })
	c.patch(t, "shop", map[string]any{"status": map[string]any{"sync": map[string]any{"status": "Synced"}}})
	until(t, "that one wish is met", func() bool { return strings.Contains(r.errs.String(), "waits: Degraded") })
	c.patch(t, "shop", map[string]any{"status": map[string]any{"health": map[string]any{"status": "Healthy", "message": nil}}})
	got := r.wait()
	got.want(t, cli.CodeOK)
	if got.stdout != c.namespace+"/shop\n" {
		t.Errorf("stdout %q", got.stdout)
	}
}

func TestAppWaitForDeletion(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", healthy)
	r := c.start(t, "app", "wait", "shop", "--delete")
	until(t, "the wait", func() bool { return strings.Contains(r.errs.String(), "waits: there") })
	if err := c.apps.Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wait().want(t, cli.CodeOK)

	c.create(t, "cart", sick)
	r = c.start(t, "app", "wait", "cart")
	until(t, "the wait", func() bool { return strings.Contains(r.errs.String(), "waits:") })
	if err := c.apps.Delete(t.Context(), "cart", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wait().want(t, cli.CodeNotFound, "deleted meanwhile")
}

func TestInterrupted(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", sick)
	r := c.start(t, "app", "wait", "shop")
	until(t, "the wait", func() bool { return strings.Contains(r.errs.String(), "waits:") })
	r.end().want(t, cli.CodeInterrupted)
}
