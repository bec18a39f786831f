package health

import (
	"encoding/json"
	"slices"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// horizontalPodAutoscaler is degraded when it can not read metrics or set the scale. Version v1 carries the conditions in
// an annotation.
func horizontalPodAutoscaler(f field.Map) v1alpha1.HealthStatus {
	if f.Stale() {
		return unobserved()
	}
	conditions := f.List("status", "conditions")
	if text := f.Text("metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions"); text != "" {
		conditions = nil
		if err := json.Unmarshal([]byte(text), &conditions); err != nil {
			return unknown("its conditions can not be read")
		}
	}
	for _, condition := range conditions {
		if slices.Contains(scalingFailures(condition.Text("type")), condition.Text("reason")) {
			return degraded(because(scalingSentence(condition.Text("type")), condition))
		}
	}
	for _, condition := range conditions {
		kind := condition.Text("type")
		if (kind == "AbleToScale" || kind == "ScalingLimited") && condition.Text("status") == "True" {
			return healthy("")
		}
	}
	return progressing("it has not scaled yet")
}

// scalingFailures are the reasons of a condition that mean failure.
func scalingFailures(condition string) []string {
	switch condition {
	case "AbleToScale":
		return []string{"FailedGetScale", "FailedUpdateScale"}
	case "ScalingActive":
		return []string{
			"FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetObjectMetric", "FailedGetPodsMetric",
			"FailedGetExternalMetric", "FailedComputeMetricsReplicas", "InvalidSelector", "InvalidMetricSourceType", "AmbiguousSelector",
		}
	}
	return nil
}

func scalingSentence(condition string) string {
	if condition == "AbleToScale" {
		return "it can not read or set the scale of its target"
	}
	return "it can not read its metrics"
}
