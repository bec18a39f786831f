package health

import "testing"

func TestStatefulSet(t *testing.T) {
	checkStates(t, "statefulset", []state{
		{"healthy", "Healthy", ""},
		{"healthy-partition", "Healthy", ""},
		{"healthy-on-delete", "Healthy", ""},
		{"progressing-not-ready", "Progressing", "it waits for pods to become ready"},
		{"progressing-unavailable", "Progressing", "it waits for pods to become available"},
		{"progressing-updating", "Progressing", "the rollout waits for updated pods"},
		{"progressing-partition", "Progressing", "the rollout waits for updated pods"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"new", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
