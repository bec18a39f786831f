package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// generic reads the conventions that most controllers keep: observedGeneration on the status or on a condition, and a few
// condition types. An object that keeps none of them has no health.
func generic(f field.Map) (v1alpha1.HealthStatus, bool) {
	_, reports := f.Number("status", "observedGeneration")
	bad, busy, good := firstTrue(f, "Stalled", "Failed", "Degraded"), firstTrue(f, "Reconciling", "Progressing"), summary(f)
	if !reports && bad == nil && busy == nil && good == nil {
		return v1alpha1.HealthStatus{}, false
	}
	switch {
	case f.Flag("spec", "suspend"), f.Flag("spec", "paused"), f.Flag("spec", "suspended"):
		return suspended("it is suspended"), true
	case f.Stale(), f.Outdated(bad), f.Outdated(good):
		return unobserved(), true
	case bad != nil:
		return degraded(steady.Condition(bad)), true
	case good != nil && good.Text("status") != "True":
		return progressing(steady.Condition(good)), true
	// Controllers that keep a condition Progressing at True for good also say that they are Ready or Available.
	case busy != nil && (busy.Text("type") == "Reconciling" || good == nil):
		return progressing(steady.Condition(busy)), true
	}
	return healthy(""), true
}

// firstTrue is the first of some conditions that holds.
func firstTrue(f field.Map, kinds ...string) field.Map {
	for _, kind := range kinds {
		if f.Holds(kind) {
			return f.Condition(kind)
		}
	}
	return nil
}

// summary is the condition that sums the others up.
func summary(f field.Map) field.Map {
	for _, kind := range []string{"Ready", "Available", "Healthy"} {
		if condition := f.Condition(kind); condition != nil {
			return condition
		}
	}
	return nil
}
