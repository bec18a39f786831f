package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// notCarriedOut tells of a sync option that this version does not carry out. Whoever sets one is told so; none is passed over in
// silence.
func notCarriedOut(option string) bool {
	name, value, _ := strings.Cut(option, "=")
	switch name {
	case "Replace", "Force", "SkipDryRunOnMissingResource":
		return value == "true"
	}
	return false
}

// unsupported tells what of the application this version does not carry out.
func unsupported(app *v1alpha1.Application, set *desiredSet) []v1alpha1.ApplicationCondition {
	var out []v1alpha1.ApplicationCondition
	tell := func(format string, args ...any) {
		out = append(out, v1alpha1.ApplicationCondition{Type: v1alpha1.ConditionUnsupportedWarning, Message: fmt.Sprintf(format, args...)})
	}
	if app.Spec.SourceHydrator != nil {
		tell("spec.sourceHydrator: branches are synced from, and not written to by this version")
	}
	if p := app.Spec.SyncPolicy; p != nil {
		for _, o := range p.SyncOptions {
			if notCarriedOut(strings.TrimSpace(o)) {
				tell("spec.syncPolicy.syncOptions: %s is not carried out by this version; objects are applied as always", o)
			}
		}
	}
	for i := range set.objects {
		d := &set.objects[i]
		var named []string
		for o := range plan.ParseOptions(d.GetAnnotations()[plan.SyncOptionsAnnotation]) {
			if notCarriedOut(o) || o == "Validate=false" {
				named = append(named, o)
			}
		}
		if len(named) > 0 {
			slices.Sort(named)
			tell("%s: its sync options %s are not carried out by this version; it is applied as always", d.key, strings.Join(named, ", "))
		}
	}
	for i := range set.hooks {
		phases := plan.HookPhases(set.hooks[i].GetAnnotations(), true)
		if slices.Contains(phases, plan.PreDelete) || slices.Contains(phases, plan.PostDelete) {
			tell("%s: hooks of PreDelete and PostDelete are not run by this version", set.hooks[i].key)
		}
	}
	return out
}
