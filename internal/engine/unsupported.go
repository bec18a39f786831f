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

// contradicted says which options of a set have several values that are all known.
func contradicted(set plan.Set) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(syncOptionsKnown())) {
		if values := set.Values(name); len(values) > 1 {
			out = append(out, fmt.Sprintf("%s is said to be %s", name, strings.Join(values, " and ")))
		}
	}
	return out
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
		tellOptions("spec.syncPolicy.syncOptions", p.SyncOptions, tell)
		if p.ManagedNamespaceMetadata != nil && !plan.SetOf(p.SyncOptions).Has(createNamespace) {
			tell("spec.syncPolicy.managedNamespaceMetadata has no effect without the sync option %s", createNamespace)
		}
	}
	for _, remark := range spec.Remarks(app.Spec) {
		tell("%s", remark)
	}
	path, list := optionsAsked(app)
	tellOptions(path, list, tell)
	for _, list := range [][]desired{set.objects, set.hooks} {
		for i := range list {
			for _, why := range plan.Misread(list[i].GetAnnotations()) {
				tell("%s: annotation %s", list[i].key, why)
			}
			for _, why := range misplaced(&list[i]) {
				tell("%s: annotation %s: %s", list[i].key, plan.SyncOptionsAnnotation, why)
			}
		}
	}
	return out
}

func tellOptions(path string, list v1alpha1.SyncOptions, tell func(string, ...any)) {
	for i, o := range list {
		if why := misunderstood(strings.TrimSpace(o), false); why != "" {
			tell("%s[%d]: %q has no effect: %s", path, i, o, why)
		}
	}
	for _, why := range contradicted(plan.SetOf(list)) {
		tell("%s: %s; name one of them", path, why)
	}
}

// optionsAsked are the options that somebody gave the operation under way, or the last one, and where they stand; automated
// syncs have those of the application.
func optionsAsked(app *v1alpha1.Application) (path string, list v1alpha1.SyncOptions) {
	if op := app.Operation; op != nil && op.Sync != nil {
		return "operation.sync.syncOptions", op.Sync.SyncOptions
	}
	if last := app.Status.OperationState; last != nil && last.Operation.Sync != nil && !last.Operation.InitiatedBy.Automated {
		return "status.operationState.operation.sync.syncOptions", last.Operation.Sync.SyncOptions
	}
	return "", nil
}

// misplaced says what of an object's own sync options has no effect, and why.
func misplaced(d *desired) []string {
	own := objectOptions(d)
	if len(own) == 0 {
		return nil
	}
	var out []string
	for _, o := range slices.Sorted(maps.Keys(own)) {
		why := misunderstood(o, true)
		if o == "Force=true" && holdsOthers(d.key) {
			why = "all that lives in it would be deleted with it"
		}
		if why != "" {
			out = append(out, fmt.Sprintf("%q has no effect: %s", o, why))
		}
	}
	for _, why := range contradicted(own) {
		out = append(out, why+"; name one of them")
	}
	return out
}
