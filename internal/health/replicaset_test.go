package health

import "testing"

func TestReplicaSet(t *testing.T) {
	checkStates(t, "replicaset", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "it waits for pods to become available"},
		{"failed", "Degraded", "pods can not be created (FailedCreate)"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
