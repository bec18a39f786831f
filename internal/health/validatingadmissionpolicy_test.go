package health

import "testing"

func TestValidatingAdmissionPolicy(t *testing.T) {
	checkStates(t, "validatingadmissionpolicy", []state{
		{"healthy", "Healthy", ""},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"new", "Progressing", "its controller has not seen the last change yet"},
		{"failed", "Degraded", "spec.validations[0].expression: undefined field replica"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: example.com/hold"},
	})
}
