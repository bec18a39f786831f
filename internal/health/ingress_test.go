package health

import "testing"

func TestIngress(t *testing.T) {
	checkStates(t, "ingress", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "it waits for an address from its ingress controller"},
		{"extensions", "Progressing", "it waits for an address from its ingress controller"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
