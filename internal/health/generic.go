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
	case f.Stale(), outdated(f, bad), outdated(f, good):
		return unobserved(), true
	case bad != nil:
		return degraded(said(bad)), true
	case good != nil && good.Text("status") != "True":
		return progressing(said(good)), true
	// Controllers that keep a condition Progressing at True for good also say that they are Ready or Available.
	case busy != nil && (busy.Text("type") == "Reconciling" || good == nil):
		return progressing(said(busy)), true
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

// outdated tells whether a condition was written for an older generation.
func outdated(f, condition field.Map) bool {
	seen, ok := condition.Number("observedGeneration")
	return ok && seen < f.Count("metadata", "generation")
}

// said is a condition in words: Ready is False: NotFound: no such bucket.
func said(condition field.Map) string {
	sentence := condition.Text("type") + " is " + condition.Text("status")
	if reason := condition.Text("reason"); reason != "" {
		sentence += ": " + reason
	}
	if message := steady.Message(condition.Text("message")); message != "" {
		sentence += ": " + message
	}
	return sentence
}
