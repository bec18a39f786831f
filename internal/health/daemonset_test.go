package health

import "testing"

func TestDaemonSet(t *testing.T) {
	checkStates(t, "daemonset", []state{
		{"healthy", "Healthy", ""},
		{"no-nodes", "Healthy", ""},
		{"healthy-on-delete", "Healthy", ""},
		{"progressing-updating", "Progressing", "the rollout waits for updated pods"},
		{"progressing-unavailable", "Progressing", "it waits for pods to become available"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
