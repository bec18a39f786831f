package health

import "testing"

func TestFlowSchema(t *testing.T) {
	checkStates(t, "flowschema", []state{
		{"healthy", "Healthy", ""},
		{"failed", "Degraded", "there is no priority level batch"},
		{"new", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: example.com/hold"},
	})
}
