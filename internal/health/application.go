package health

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// application takes over the health that the child application reports, unless that belongs to an older source.
func application(f fields) v1alpha1.HealthStatus {
	status := v1alpha1.HealthStatusCode(f.text("status", "health", "status"))
	switch {
	case status == "":
		return progressing("it has not been assessed yet")
	case status == v1alpha1.HealthHealthy && sourceMoved(f):
		return progressing("it has not been compared since its source changed")
	}
	return v1alpha1.HealthStatus{Status: status, Message: steady(f.text("status", "health", "message"))}
}

// sourceMoved tells whether the last comparison was with another source than the spec names. Applications have no observed
// generation; the place of the source is what tells a new version of a child from the one that was assessed.
func sourceMoved(f fields) bool {
	compared := f.at("status", "sync", "comparedTo")
	if compared == nil || f.at("spec", "sourceHydrator") != nil {
		return false
	}
	want, have := sources(f.at("spec")), sources(compared)
	if len(want) != len(have) {
		return true
	}
	for i := range want {
		for _, field := range []string{"repoURL", "path", "chart", "targetRevision"} {
			if want[i].text(field) != have[i].text(field) {
				return true
			}
		}
	}
	return false
}

func sources(f fields) []fields {
	if list := f.list("sources"); len(list) > 0 {
		return list
	}
	return []fields{f.at("source")}
}
