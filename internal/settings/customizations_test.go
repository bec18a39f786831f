package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/settings"
)

func TestCustomizations(t *testing.T) {
	got, bad := settings.Customizations(map[string]string{
		"url": "https://cd.example.com",
		"resource.customizations": `
argoproj.io/Rollout:
  health.lua: |
    return {status = "Healthy"}
  health.lua.useOpenLibs: true
  health.rego: nothing
ConfigMap:
  health.lua: return nil
"*/*":
  ignoreDifferences: |
    jsonPointers: [/spec/a]
Job:
  actions: {definitions: []}
`,
		"resource.customizations.health.ConfigMap": "by itself",
	})
	want := map[string]string{
		"url": "https://cd.example.com",
		"resource.customizations.health.argoproj.io_Rollout":      "return {status = \"Healthy\"}\n",
		"resource.customizations.useOpenLibs.argoproj.io_Rollout": "true",
		"resource.customizations.health.ConfigMap":                "by itself",
		"resource.customizations.ignoreDifferences.*":             "jsonPointers: [/spec/a]\n",
		"resource.customizations.actions.Job":                     "{definitions: []}\n",
	}
	delete(got, "resource.customizations")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(bad) != 1 || bad[0].Error() != "argocd-cm: resource.customizations: argoproj.io/Rollout: health.rego is not known" {
		t.Errorf("problems: %v", bad)
	}
	for _, nonsense := range []string{"- a\n- b", "a: {b: c", "a: text"} {
		got, bad := settings.Customizations(map[string]string{"resource.customizations": nonsense, "url": "x"})
		if len(bad) != 1 || !strings.Contains(bad[0].Error(), "argocd-cm: resource.customizations: ") || got["url"] != "x" {
			t.Errorf("%q: %v, %v", nonsense, got, bad)
		}
	}
}
