package health

import "testing"

func TestAPIService(t *testing.T) {
	checkStates(t, "apiservice", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "the server behind it is not available (FailedDiscoveryCheck)"},
		{"new", "Progressing", "it has not been looked at yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
