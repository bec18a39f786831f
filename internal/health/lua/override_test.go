package lua

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/health"
)

func TestOverrides(t *testing.T) {
	overrides, errs := Overrides(map[string]string{
		"resource.customizations.health.apps_Deployment":               `return {status = "Suspended", message = "by the script"}`,
		"resource.customizations.health.ConfigMap":                     `return {status = "Degraded", message = obj.data.a}`,
		"resource.customizations.health.*.example.com_*":               `return {status = "Progressing", message = "any"}`,
		"resource.customizations.health.shop.example.com_Basket":       `return {status = "Healthy", message = string.upper("a")}`,
		"resource.customizations.useOpenLibs.shop.example.com_Basket":  "true",
		"resource.customizations.health.example.com_None":              `return nil`,
		"resource.customizations.health.example.com_Wrong":             `return {status = obj.x.y}`,
		"resource.customizations.health.example.com_Broken":            `return {`,
		"resource.customizations.ignoreDifferences.example.com_Basket": `jsonPointers: []`,
	}, Limits{})
	if len(errs) != 1 || errs[0].Error() != "resource.customizations.health.example.com_Broken: the script ends too early" {
		t.Errorf("errors: %v", errs)
	}
	rules := health.Rules{Overrides: overrides}
	for _, c := range []struct{ version, kind, want string }{
		{"apps/v1", "Deployment", "Suspended by the script"},
		{"v1", "ConfigMap", "Degraded x"},
		{"shop.example.com/v1", "Basket", "Healthy A"},
		{"pay.example.com/v1", "Bill", "Progressing any"},
		{"example.com/v1", "None", " "},
		{"example.com/v1", "Wrong", "Unknown resource.customizations.health.example.com_Wrong: line 1: attempt to index a non-table object(nil) with key 'y'"},
		{"batch/v1", "Job", "Progressing it is running"},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.version, "kind": c.kind, "metadata": map[string]any{"name": "a"}, "data": map[string]any{"a": "x"}}}
		got, has := rules.Of(context.Background(), obj)
		if text := string(got.Status) + " " + got.Message; text != c.want || has != (c.want != " ") {
			t.Errorf("%s: %s, want %s", c.kind, text, c.want)
		}
	}
}
