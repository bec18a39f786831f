package plan_test

import (
	"slices"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/plan"
)

func TestMisread(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        []string
	}{
		"nothing":           {nil, nil},
		"good":              {map[string]string{plan.WaveAnnotation: "-5", plan.HookAnnotation: "PreSync, PostSync", plan.HookDeleteAnnotation: "HookSucceeded,hook-failed"}, nil},
		"wave":              {map[string]string{plan.WaveAnnotation: "first"}, []string{`argocd.argoproj.io/sync-wave: "first" is no whole number; 0 is used`}},
		"weight":            {map[string]string{plan.HelmWeightAnnotation: "1.5"}, []string{`helm.sh/hook-weight: "1.5" is no whole number; 0 is used`}},
		"weight below wave": {map[string]string{plan.WaveAnnotation: "1", plan.HelmWeightAnnotation: "x"}, nil},
		"phase":             {map[string]string{plan.HookAnnotation: "PreSink"}, []string{`argocd.argoproj.io/hook: "PreSink" is no phase; it runs in none for it`}},
		"policy":            {map[string]string{plan.HelmDeleteAnnotation: "always"}, []string{`helm.sh/hook-delete-policy: "always" is no policy; it has no effect`}},
	} {
		if got := plan.Misread(c.annotations); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
