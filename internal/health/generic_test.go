package health

import "testing"

func TestGeneric(t *testing.T) {
	checkStates(t, "generic", []state{
		{"healthy", "Healthy", ""},
		{"healthy-generation", "Healthy", ""},
		{"healthy-unreported", "Healthy", ""},
		{"healthy-busy-for-good", "Healthy", ""},
		{"progressing", "Progressing", "Ready is False: Waiting: some of all members have joined"},
		{"progressing-unknown", "Progressing", "Ready is Unknown"},
		{"progressing-reconciling", "Progressing", "Reconciling is True: Creating"},
		{"progressing-only", "Progressing", "Progressing is True"},
		{"failed-stalled", "Degraded", "Stalled is True: NoAccess: access denied"},
		{"failed", "Degraded", "Failed is True"},
		{"failed-degraded", "Degraded", "Degraded is True: Disk"},
		{"suspended", "Suspended", "it is suspended"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"stale-condition", "Progressing", "its controller has not seen the last change yet"},
		{"stale-failure", "Progressing", "its controller has not seen the last change yet"},
		{"none-empty", "", ""},
		{"none-unknown-condition", "", ""},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
