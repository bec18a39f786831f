package health

import "testing"

func TestReplicationController(t *testing.T) {
	checkStates(t, "replicationcontroller", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "it waits for pods to become available"},
		{"failed", "Degraded", "pods can not be created (FailedCreate)"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
