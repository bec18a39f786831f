package health

import (
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// cronJob is degraded when its last Job ended without success. One that is suspended is as it was meant to be, and a sync
// must not wait for it: so it is healthy, and says that it is suspended.
func cronJob(f field.Map) v1alpha1.HealthStatus {
	if f.Flag("spec", "suspend") {
		return healthy("it is suspended")
	}
	scheduled, ran := moment(f, "lastScheduleTime")
	succeeded, worked := moment(f, "lastSuccessfulTime")
	switch {
	case !ran:
		return healthy("it has not run yet")
	case len(f.List("status", "active")) > 0, !worked:
		// Nobody knows yet whether the running Job, or the first one, will succeed.
		return healthy("")
	case succeeded.Before(scheduled):
		return degraded("its last Job did not succeed")
	}
	return healthy("")
}

// moment reads a time of the status.
func moment(f field.Map, name string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, f.Text("status", name))
	return at, err == nil
}
