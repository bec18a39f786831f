package health

import "testing"

func TestPersistentVolume(t *testing.T) {
	checkStates(t, "persistentvolume", []state{
		{"healthy", "Healthy", ""},
		{"healthy-released", "Healthy", ""},
		{"progressing", "Progressing", "it is not available yet"},
		{"failed", "Degraded", "it can not be reclaimed (RecyclerFailed)"},
		{"unknown", "Unknown", "it is in the unknown phase Elsewhere"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
