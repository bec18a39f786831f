package health

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// application takes over the health that the child application reports, unless that belongs to an older source.
func application(f field.Map) v1alpha1.HealthStatus {
	status := v1alpha1.HealthStatusCode(f.Text("status", "health", "status"))
	switch {
	case status == "":
		return progressing("it has not been assessed yet")
	case status == v1alpha1.HealthHealthy && sourceMoved(f):
		return progressing("it has not been compared since its source changed")
	}
	return v1alpha1.HealthStatus{Status: status, Message: steady.Message(f.Text("status", "health", "message"))}
}

// sourceMoved tells whether the last comparison was with another source than the spec names. Applications have no observed
// generation; the place of the source is what tells a new version of a child from the one that was assessed.
func sourceMoved(f field.Map) bool {
	compared := f.At("status", "sync", "comparedTo")
	if compared == nil || f.At("spec", "sourceHydrator") != nil {
		return false
	}
	want, have := sources(f.At("spec")), sources(compared)
	if len(want) != len(have) {
		return true
	}
	for i := range want {
		for _, field := range []string{"repoURL", "path", "chart", "targetRevision"} {
			if want[i].Text(field) != have[i].Text(field) {
				return true
			}
		}
	}
	return false
}

func sources(f field.Map) []field.Map {
	if list := f.List("sources"); len(list) > 0 {
		return list
	}
	return []field.Map{f.At("source")}
}
