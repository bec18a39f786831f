package health

import "testing"

func TestPersistentVolumeClaim(t *testing.T) {
	checkStates(t, "persistentvolumeclaim", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "it is not bound to a volume yet"},
		{"failed", "Degraded", "its volume is gone"},
		{"unknown", "Unknown", "it is in the unknown phase Elsewhere"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
