package client

import (
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Cause is the one sentence that says what is not so with app and why; empty when nothing is. What keeps everything else
// from being known comes first.
func Cause(app *v1alpha1.Application) string {
	status := &app.Status
	for _, c := range status.Conditions {
		if strings.HasSuffix(string(c.Type), "Error") {
			return c.Message
		}
	}
	op := status.OperationState
	switch {
	case op != nil && (op.Phase == v1alpha1.OperationFailed || op.Phase == v1alpha1.OperationError) && status.Sync.Status != v1alpha1.SyncSynced:
		return "The last sync did not work: " + op.Message
	case status.Health.Status == v1alpha1.HealthDegraded && status.Health.Message != "":
		return status.Health.Message
	case op != nil && !op.Phase.Completed() && op.Message != "":
		return op.Message
	case status.Health.Status != v1alpha1.HealthHealthy && status.Health.Message != "":
		return status.Health.Message
	case status.Sync.Status == v1alpha1.SyncOutOfSync:
		return differing(status.Resources)
	case status.Sync.Status == "":
		return "Not looked at yet."
	}
	return ""
}

// differing counts what is out of step, by what a sync would do to it.
func differing(resources []v1alpha1.ResourceStatus) string {
	differ, missing, extra := 0, 0, 0
	for _, r := range resources {
		switch {
		case r.Status != v1alpha1.SyncOutOfSync:
		case r.RequiresPruning:
			extra++
		case r.Health != nil && r.Health.Status == v1alpha1.HealthMissing:
			missing++
		default:
			differ++
		}
	}
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 object "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d objects %s", n, many))
		}
	}
	add(differ, "differs", "differ")
	add(missing, "is missing", "are missing")
	add(extra, "left the source", "left the source")
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, of %d.", strings.Join(parts, ", "), len(resources))
}

// InStep tells whether app is Synced with what its spec asks for now. A status that was made from another source does
// not count.
func InStep(app *v1alpha1.Application) bool {
	return app.Status.Sync.Status == v1alpha1.SyncSynced && comparedToSpec(app)
}

func comparedToSpec(app *v1alpha1.Application) bool {
	to := app.Status.Sync.ComparedTo
	if len(app.Spec.Sources) != len(to.Sources) {
		return false
	}
	for i, s := range app.Spec.Sources {
		if !sameSource(&s, &to.Sources[i]) {
			return false
		}
	}
	if len(app.Spec.Sources) == 0 && app.Spec.Source != nil {
		return sameSource(app.Spec.Source, &to.Source)
	}
	return true
}

// sameSource compares what names the place; options of tools may be spelled anew by a controller.
func sameSource(a, b *v1alpha1.ApplicationSource) bool {
	return a.RepoURL == b.RepoURL && a.Path == b.Path && a.TargetRevision == b.TargetRevision && a.Chart == b.Chart
}
