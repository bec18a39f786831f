package health

import "testing"

func TestCustomResourceDefinition(t *testing.T) {
	checkStates(t, "customresourcedefinition", []state{
		{"healthy", "Healthy", ""},
		{"progressing", "Progressing", "the API server does not serve it yet"},
		{"new", "Progressing", "the API server does not serve it yet"},
		{"failed-names", "Degraded", "its names are not accepted: \"app\" is already in use"},
		{"failed-schema", "Degraded", "its schema is not structural: spec.versions[0].schema: Required value"},
		{"terminating", "Progressing", "it is being deleted"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
