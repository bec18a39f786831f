package health

import "testing"

func TestApplication(t *testing.T) {
	checkStates(t, "application", []state{
		{"healthy", "Healthy", ""},
		{"healthy-uncompared", "Healthy", ""},
		{"progressing", "Progressing", "Caused by Deployment.apps/shop/web: it is paused"},
		{"failed", "Degraded", "Caused by Job.batch/shop/db: it failed"},
		{"suspended", "Suspended", ""},
		{"missing", "Missing", ""},
		{"new", "Progressing", "it has not been assessed yet"},
		{"stale", "Progressing", "it has not been compared since its source changed"},
		{"stale-sources", "Progressing", "it has not been compared since its source changed"},
		{"stale-failed", "Degraded", ""},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
