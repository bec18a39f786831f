package cel

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/health"
)

func object() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "web", "generation": int64(3)},
		"spec":   map[string]any{"replicas": int64(2)},
		"status": map[string]any{"phase": "Ready", "conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "no such bucket"}}},
	}
}

func run(source string, limits Limits) string {
	expression, err := Compile("e", source, limits)
	if err != nil {
		return "error: " + err.Error()
	}
	got, has, err := expression.Health(context.Background(), object())
	switch {
	case err != nil:
		return "error: " + err.Error()
	case !has:
		return "none"
	}
	return string(got.Status) + " " + got.Message
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"a status", `obj.status.phase == "Ready" ? "Healthy" : "Progressing"`, "Healthy "},
		{"status and message", `{"status": "Degraded", "message": obj.status.conditions.filter(c, c.type == "Ready")[0].message}`, "Degraded no such bucket"},
		{"a field that is not there", `has(obj.status.nothing) ? "Healthy" : "Suspended"`, "Suspended "},
		{"conditions", `obj.status.conditions.exists(c, c.type == "Ready" && c.status == "True") ? "Healthy" : "Progressing"`, "Progressing "},
		{"numbers", `obj.spec.replicas >= 2 ? "Healthy" : "Progressing"`, "Healthy "},
		{"no health", `null`, "none"},
		{"a steady message", `{"status": "Progressing", "message": "try 5"}`, "Progressing try …"},
		{"no such key", `obj.status.nothing`, "error: e: no such key: nothing"},
		{"no such status", `"Good"`, `error: e: it returned the status "Good"; return Healthy, Progressing, Degraded, Suspended, Missing or Unknown`},
		{"a number", `3`, "error: e: it yields a int; yield a status, or a map with status and message"},
		{"unknown name", `object.status`, "error: e: line 1, column 1: undeclared reference to 'object' (in container '')"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := run(c.source, Limits{}); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSyntax(t *testing.T) {
	if got, want := run("obj.status ==", Limits{}), "error: e: line 1, column 14: Syntax error: "; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s…", got, want)
	}
}

// Expressions always end, but could take long or much.
func TestHostileExpressions(t *testing.T) {
	list := "[" + strings.Repeat("1,", 99) + "1]"
	loops := list + `.all(a, ` + list + `.all(b, ` + list + `.all(c, ` + list + `.all(d, a + b + c + d > 0)))) ? "Healthy" : "Degraded"`
	if got := run(loops, Limits{Time: time.Minute, Cost: 50_000}); got != "error: e: it did more than 50000 steps" {
		t.Error(got)
	}
	if got := run(loops, Limits{Cost: 1 << 60, Time: 20 * time.Millisecond}); got != "error: e: it ran longer than 20ms" {
		t.Error(got)
	}
	if got := run(strings.Repeat("x", maxSource+1), Limits{}); got != "error: e: the expression has 16385 bytes; 16384 are allowed" {
		t.Error(got)
	}
	if got := run(strings.Repeat("(", 5000)+"1"+strings.Repeat(")", 5000), Limits{}); !strings.HasPrefix(got, "error: ") {
		t.Error(got)
	}
}

func TestOverrides(t *testing.T) {
	overrides, errs := Overrides(map[string]string{
		"health.cel.example.com_Widget":                    `{"status": "Suspended", "message": obj.metadata.name}`,
		"health.cel.example.com_Broken":                    `{`,
		"resource.customizations.health.example.com_Other": `return {}`,
	}, Limits{})
	if len(overrides) != 1 || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "health.cel.example.com_Broken: line 1") {
		t.Errorf("%d overrides, errors %v", len(overrides), errs)
	}
	got, _ := health.Rules{Overrides: overrides}.Of(context.Background(), &unstructured.Unstructured{Object: object()})
	if got.Status != "Suspended" || got.Message != "web" {
		t.Errorf("%v", got)
	}
}
