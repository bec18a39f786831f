package health

import "testing"

func TestDeployment(t *testing.T) {
	checkStates(t, "deployment", []state{
		{"healthy", "Healthy", ""},
		{"scaled-to-zero", "Healthy", ""},
		{"progressing-updating", "Progressing", "the rollout waits for updated pods"},
		{"progressing-old-pods", "Progressing", "the rollout waits for old pods to stop"},
		{"progressing-unavailable", "Progressing", "the rollout waits for pods to become available"},
		{"progressing-quota", "Progressing", "pods can not be created (FailedCreate)"},
		{"failed", "Degraded", "the rollout exceeded its progress deadline"},
		{"suspended", "Suspended", "it is paused"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"stale-failed", "Progressing", "its controller has not seen the last change yet"},
		{"new", "Progressing", "its controller has not seen the last change yet"},
		{"default-replicas", "Progressing", "the rollout waits for updated pods"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
