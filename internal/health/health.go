// Package health owns the question whether one object is well: a pure function from the object to a status and one
// sentence. One file per kind; what has no file of its own is read by its conditions.
//
// The sentence stays the same as long as the cause does: it holds no counters, times or generated names. An object whose
// status belongs to an older generation is never Healthy.
//
// It imports api and Kubernetes' API machinery and does no I/O.
package health

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// Of is the health of a live object; false means that nothing can be said of objects like it, which then count as done.
// LastTransitionTime is left to the caller. The object is not changed.
func Of(obj *unstructured.Unstructured) (v1alpha1.HealthStatus, bool) {
	f := field.Map(obj.Object)
	if obj.GetDeletionTimestamp() != nil {
		return deleting(obj.GetFinalizers()), true
	}
	rule, found := ruleFor(obj.GroupVersionKind().GroupKind())
	switch {
	case !found:
		return generic(f)
	case rule == nil:
		return v1alpha1.HealthStatus{}, false
	}
	return rule(f), true
}

// rule is the health of objects of one kind.
type rule func(field.Map) v1alpha1.HealthStatus

// ruleFor finds the rule of a kind. A kind that is found without a rule has no health, whatever its conditions say.
func ruleFor(kind schema.GroupKind) (rule, bool) {
	switch kind.Group {
	case "":
		return coreRule(kind.Kind)
	case "apps":
		return appsRule(kind.Kind)
	case "batch":
		switch kind.Kind {
		case "Job":
			return job, true
		case "CronJob":
			return cronJob, true
		}
	case v1alpha1.Group:
		switch kind.Kind {
		case v1alpha1.ApplicationKind:
			return application, true
		case "Workflow":
			return workflow, true
		}
	}
	switch kind.String() {
	case "HorizontalPodAutoscaler.autoscaling":
		return horizontalPodAutoscaler, true
	case "Ingress.networking.k8s.io", "Ingress.extensions":
		return ingress, true
	case "APIService.apiregistration.k8s.io":
		return apiService, true
	case "PodDisruptionBudget.policy":
		return podDisruptionBudget, true
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return customResourceDefinition, true
	}
	return nil, false
}

func coreRule(kind string) (rule, bool) {
	switch kind {
	case "Pod":
		return pod, true
	case "Service":
		return service, true
	case "PersistentVolumeClaim":
		return persistentVolumeClaim, true
	case "PersistentVolume":
		return persistentVolume, true
	case "Namespace":
		return namespace, true
	case "ReplicationController":
		return replicationController, true
	case "Node":
		// A node comes and goes with the machine under it; that is not the application's health.
		return nil, true
	}
	return nil, false
}

func appsRule(kind string) (rule, bool) {
	switch kind {
	case "Deployment":
		return deployment, true
	case "StatefulSet":
		return statefulSet, true
	case "DaemonSet":
		return daemonSet, true
	case "ReplicaSet":
		return replicaSet, true
	}
	return nil, false
}

// deleting is the health of an object that is on its way out.
func deleting(finalizers []string) v1alpha1.HealthStatus {
	if len(finalizers) == 0 {
		return progressing("it is being deleted")
	}
	return progressing("it is being deleted and waits for its finalizers: " + strings.Join(finalizers, ", "))
}

// unobserved is the health of an object whose controller reports for an older generation, or has not reported at all.
func unobserved() v1alpha1.HealthStatus {
	return progressing("its controller has not seen the last change yet")
}

func healthy(message string) v1alpha1.HealthStatus {
	return v1alpha1.HealthStatus{Status: v1alpha1.HealthHealthy, Message: message}
}

func progressing(message string) v1alpha1.HealthStatus {
	return v1alpha1.HealthStatus{Status: v1alpha1.HealthProgressing, Message: message}
}

func degraded(message string) v1alpha1.HealthStatus {
	return v1alpha1.HealthStatus{Status: v1alpha1.HealthDegraded, Message: message}
}

func suspended(message string) v1alpha1.HealthStatus {
	return v1alpha1.HealthStatus{Status: v1alpha1.HealthSuspended, Message: message}
}

func unknown(message string) v1alpha1.HealthStatus {
	return v1alpha1.HealthStatus{Status: v1alpha1.HealthUnknown, Message: message}
}
