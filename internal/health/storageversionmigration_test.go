package health

import "testing"

func TestStorageVersionMigration(t *testing.T) {
	checkStates(t, "storageversionmigration", []state{
		{"healthy", "Healthy", "it is complete"},
		{"progressing", "Progressing", "it is running"},
		{"failed", "Degraded", "Failed is True: x: no such resource"},
		{"new", "Progressing", "it has not started yet"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: example.com/hold"},
	})
}
