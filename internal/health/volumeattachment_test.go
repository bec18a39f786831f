package health

import "testing"

func TestVolumeAttachment(t *testing.T) {
	checkStates(t, "volumeattachment", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "its volume is not attached yet"},
		{"failed", "Degraded", "its volume can not be attached: rpc error: volume is in use"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: example.com/hold"},
	})
}
