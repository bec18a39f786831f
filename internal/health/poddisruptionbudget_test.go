package health

import "testing"

func TestPodDisruptionBudget(t *testing.T) {
	checkStates(t, "poddisruptionbudget", []state{
		{"healthy", "Healthy", ""},
		{"healthy-insufficient", "Healthy", ""},
		{"failed", "Degraded", "the number of pods to protect can not be worked out (SyncFailed)"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"new", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
