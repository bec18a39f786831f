package health

import "testing"

func TestHorizontalPodAutoscaler(t *testing.T) {
	checkStates(t, "horizontalpodautoscaler", []state{
		{"healthy", "Healthy", ""},
		{"healthy-off", "Healthy", ""},
		{"progressing", "Progressing", "it has not scaled yet"},
		{"new", "Progressing", "it has not scaled yet"},
		{"failed-metrics", "Degraded", "it can not read its metrics (FailedGetResourceMetric)"},
		{"failed-scale", "Degraded", "it can not read or set the scale of its target (FailedGetScale)"},
		{"stale", "Progressing", "its controller has not seen the last change yet"},
		{"v1-healthy", "Healthy", ""},
		{"v1-failed", "Degraded", "it can not read its metrics (FailedGetResourceMetric)"},
		{"v1-new", "Progressing", "it has not scaled yet"},
		{"v1-unreadable", "Unknown", "its conditions can not be read"},
		{"deleting", "Progressing", "it is being deleted and waits for its finalizers: foregroundDeletion"},
	})
}
