package health

import "testing"

func TestJob(t *testing.T) {
	checkStates(t, "job", []state{
		{"healthy", "Healthy", "it is complete"},
		{"progressing", "Progressing", "it is running"},
		{"new", "Progressing", "it is running"},
		{"failed", "Degraded", "its pods failed more often than its backoff limit allows"},
		{"failed-deadline", "Degraded", "it ran longer than its deadline allows"},
		{"failed-policy", "Degraded", "a pod failed in a way that its failure policy does not retry"},
		{"failed-other", "Degraded", "it failed (Elsewhere)"},
		{"failing", "Progressing", "it has failed and waits for its pods to stop"},
		{"succeeding", "Progressing", "it has succeeded and waits for its pods to stop"},
		{"suspended", "Suspended", "it is suspended"},
		{"resumed", "Progressing", "it is running"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
