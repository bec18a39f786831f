package health

import "testing"

func TestCronJob(t *testing.T) {
	checkStates(t, "cronjob", []state{
		{"healthy", "Healthy", ""},
		{"healthy-new", "Healthy", "it has not run yet"},
		{"healthy-running", "Healthy", ""},
		{"healthy-first-run", "Healthy", ""},
		{"failed", "Degraded", "its last Job did not succeed"},
		{"suspended", "Healthy", "it is suspended"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
