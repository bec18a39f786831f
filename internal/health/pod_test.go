package health

import "testing"

func TestPod(t *testing.T) {
	checkStates(t, "pod", []state{
		{"healthy", "Healthy", ""},
		{"healthy-ended", "Healthy", "it is complete"},
		{"healthy-restarted", "Healthy", ""},
		{"new", "Progressing", "it is not scheduled yet"},
		{"progressing-unschedulable", "Progressing", "no node can take it"},
		{"progressing-gated", "Progressing", "it waits for its scheduling gates"},
		{"progressing-creating", "Progressing", "its containers have not started yet"},
		{"progressing-not-ready", "Progressing", "it is not ready yet"},
		{"progressing-ends", "Progressing", "it is running"},
		{"progressing-ends-pull", "Progressing", "its containers have not started yet"},
		{"ignored-policy", "Healthy", ""},
		{"ignored-policy-hook", "Progressing", "it is running"},
		{"failed-pull", "Degraded", "container web can not pull image registry.example.com/web:2"},
		{"failed-pull-again", "Degraded", "container web can not pull image registry.example.com/web:2"},
		{"failed-image-name", "Degraded", "container web can not pull image registry.example.com/web:2"},
		{"failed-config", "Degraded", "container web can not start (CreateContainerConfigError)"},
		{"failed-crash-waiting", "Degraded", "container web stopped with exit code 1"},
		{"failed-crash-ended", "Degraded", "container web stopped with exit code 1"},
		{"failed-crash-running", "Degraded", "container web stopped with exit code 1"},
		{"failed-crash-init", "Degraded", "container migrate stopped with exit code 3"},
		{"failed-memory", "Degraded", "container web was killed: it needs more memory than its limit"},
		{"failed-ended", "Degraded", "container web stopped with exit code 1"},
		{"failed-evicted", "Degraded", "it failed (Evicted)"},
		{"unknown", "Unknown", "its node does not report"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
