package health

import "testing"

func TestWorkflow(t *testing.T) {
	checkStates(t, "workflow", []state{
		{"healthy", "Healthy", "it is complete"},
		{"progressing", "Progressing", "it is running"},
		{"new", "Progressing", "it has not started yet"},
		{"failed", "Degraded", "it failed: child 'web-…' failed"},
		{"failed-silently", "Degraded", "it failed"},
		{"suspended", "Suspended", "it is suspended"},
		{"unknown", "Unknown", "it is in the unknown phase Elsewhere"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
