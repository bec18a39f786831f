package health

import "testing"

func TestServiceCIDR(t *testing.T) {
	checkStates(t, "servicecidr", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "Ready is False: Terminating"},
		{"new", "Progressing", "its controller has not seen the last change yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: example.com/hold"},
	})
}
