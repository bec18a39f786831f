package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// generic reads the conventions that most controllers keep: observedGeneration on the status or on a condition, and a few
// condition types. An object that keeps none of them has no health.
func generic(f fields) (v1alpha1.HealthStatus, bool) {
	_, reports := f.number("status", "observedGeneration")
	bad, busy, good := firstTrue(f, "Stalled", "Failed", "Degraded"), firstTrue(f, "Reconciling", "Progressing"), summary(f)
	if !reports && bad == nil && busy == nil && good == nil {
		return v1alpha1.HealthStatus{}, false
	}
	switch {
	case f.flag("spec", "suspend"), f.flag("spec", "paused"), f.flag("spec", "suspended"):
		return suspended("it is suspended"), true
	case f.stale(), outdated(f, bad), outdated(f, good):
		return unobserved(), true
	case bad != nil:
		return degraded(said(bad)), true
	case good != nil && good.text("status") != "True":
		return progressing(said(good)), true
	// Controllers that keep a condition Progressing at True for good also say that they are Ready or Available.
	case busy != nil && (busy.text("type") == "Reconciling" || good == nil):
		return progressing(said(busy)), true
	}
	return healthy(""), true
}

// firstTrue is the first of some conditions that holds.
func firstTrue(f fields, kinds ...string) fields {
	for _, kind := range kinds {
		if f.holds(kind) {
			return f.condition(kind)
		}
	}
	return nil
}

// summary is the condition that sums the others up.
func summary(f fields) fields {
	for _, kind := range []string{"Ready", "Available", "Healthy"} {
		if condition := f.condition(kind); condition != nil {
			return condition
		}
	}
	return nil
}

// outdated tells whether a condition was written for an older generation.
func outdated(f, condition fields) bool {
	seen, ok := condition.number("observedGeneration")
	return ok && seen < f.count("metadata", "generation")
}

// said is a condition in words: Ready is False: NotFound: no such bucket.
func said(condition fields) string {
	sentence := condition.text("type") + " is " + condition.text("status")
	if reason := condition.text("reason"); reason != "" {
		sentence += ": " + reason
	}
	if message := steady(condition.text("message")); message != "" {
		sentence += ": " + message
	}
	return sentence
}
