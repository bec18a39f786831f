package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/spec"
)

// syncOption is what is known of a sync option (contract §1.3).
type syncOption struct {
	values []string
	// object and application tell where it may stand.
	object, application bool
}

func syncOptionsKnown() map[string]syncOption {
	flag := []string{"true", "false"}
	return map[string]syncOption{
		"ApplyOutOfSyncOnly":          {flag, false, true},
		"ClientSideApplyMigration":    {flag, false, true},
		"CreateNamespace":             {flag, false, true},
		"Delete":                      {append(flag, "confirm"), true, true},
		"FailOnSharedResource":        {flag, false, true},
		"Force":                       {flag, true, false},
		"Prune":                       {append(flag, "confirm"), true, true},
		"PruneLast":                   {flag, true, true},
		"PrunePropagationPolicy":      {[]string{"foreground", "background", "orphan"}, false, true},
		"Replace":                     {flag, true, true},
		"RespectIgnoreDifferences":    {flag, false, true},
		"ServerSideApply":             {flag, true, true},
		"SkipDryRunOnMissingResource": {flag, true, true},
		"Validate":                    {flag, true, true},
	}
}

// misunderstood says why a sync option has no effect; empty when it has. Whoever writes one that is not known is told so,
// none is passed over in silence.
func misunderstood(text string, object bool) string {
	name, value, _ := strings.Cut(text, "=")
	o, known := syncOptionsKnown()[name]
	switch {
	case !known:
		return "no sync option has this name"
	case !slices.Contains(o.values, value):
		return fmt.Sprintf("the values of %s are %s", name, strings.Join(o.values, ", "))
	case object && !o.object:
		return "it is an option of applications, not of objects"
	case !object && !o.application:
		return "it is an option of objects, not of applications"
	}
	return ""
}

// unsupported tells what of the application has no effect.
func unsupported(app *v1alpha1.Application, set *desiredSet) []v1alpha1.ApplicationCondition {
	var out []v1alpha1.ApplicationCondition
	tell := func(format string, args ...any) {
		out = append(out, v1alpha1.ApplicationCondition{Type: v1alpha1.ConditionUnsupportedWarning, Message: fmt.Sprintf(format, args...)})
	}
	if app.Spec.SourceHydrator != nil {
		tell("spec.sourceHydrator: branches are synced from, and not written to by this version")
	}
	if p := app.Spec.SyncPolicy; p != nil {
		for i, o := range p.SyncOptions {
			if why := misunderstood(strings.TrimSpace(o), false); why != "" {
				tell("spec.syncPolicy.syncOptions[%d]: %q has no effect: %s", i, o, why)
			}
		}
	}
	for _, remark := range spec.Remarks(app.Spec) {
		tell("%s", remark)
	}
	for _, list := range [][]desired{set.objects, set.hooks} {
		for i := range list {
			for _, why := range plan.Misread(list[i].GetAnnotations()) {
				tell("%s: annotation %s", list[i].key, why)
			}
			for _, o := range slices.Sorted(maps.Keys(objectOptions(&list[i]))) {
				if why := misunderstood(o, true); why != "" {
					tell("%s: annotation %s: %q has no effect: %s", list[i].key, plan.SyncOptionsAnnotation, o, why)
				}
			}
		}
	}
	return out
}
