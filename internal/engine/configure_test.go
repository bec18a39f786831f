package engine_test

import (
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// What the settings say about health counts at once and only for as long as it stands there; what can not be used of it is
// left out.
func TestHealthBySettings(t *testing.T) {
	w := newWorld(t)
	r := w.repo("health", map[string]string{
		"app/a.yaml":   configMap("a", "1"),
		"app/svc.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: svc}\nspec: {type: ClusterIP, ports: [{port: 80}]}\n",
	})
	w.app("health", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("health", "")
	script := `if obj.metadata.name == "a" then return {status = "Degraded", message = "k is " .. obj.data.k} end`
	for _, step := range []struct {
		data map[string]string
		want v1alpha1.HealthStatusCode
	}{
		{map[string]string{"resource.customizations.health.ConfigMap": script}, v1alpha1.HealthDegraded},
		{map[string]string{"health.cel.ConfigMap": `{"status": "Suspended"}`, "health.cel.Service": "obj."}, v1alpha1.HealthSuspended},
		{map[string]string{"resource.customizations": "Service: {health.lua: 'return {status = \"Progressing\"}'}"}, v1alpha1.HealthProgressing},
		{nil, v1alpha1.HealthHealthy},
	} {
		w.setting(step.data)
		w.until("health "+string(step.want), func() (string, bool) {
			h := w.get("health").Status.Health
			said := step.want != v1alpha1.HealthDegraded || strings.Contains(h.Message, "k is 1")
			return string(h.Status) + " " + h.Message, h.Status == step.want && said
		})
	}
}
