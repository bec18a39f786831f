package health

import "testing"

func TestNamespace(t *testing.T) {
	checkStates(t, "namespace", []state{
		{"healthy", "Healthy", ""},
		{"terminating", "Progressing", "it is being deleted"},
		{"deleting", "Progressing", "it is being deleted"},
	})
}
