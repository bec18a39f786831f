// Package health owns the question whether one object is well: a pure function from the object to a status and one
// sentence. One file per kind of Kubernetes; custom resources have package table; what neither knows is read by its
// conditions. Packages lua and cel hold the scripts and expressions with which people overrule all of them.
//
// The sentence stays the same as long as the cause does: it holds no counters, times or generated names. An object whose
// status belongs to an older generation is never Healthy.
//
// It imports api and Kubernetes' API machinery and does no I/O.
package health

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/health/table"
)

// Of is the health of a live object by what is built in; false means that nothing can be said of objects like it, which
// then count as done. LastTransitionTime is left to the caller. The object is not changed.
func Of(obj *unstructured.Unstructured) (v1alpha1.HealthStatus, bool) {
	return Rules{}.Of(context.Background(), obj) // without overrides nothing can block
}

// Rules are what people say about health on top of what is built in. The zero value says nothing.
type Rules struct {
	// Overrides are asked first, in order: scripts and expressions of the settings.
	Overrides []Override
	// Tables are asked next, in order; each beats what is built in.
	Tables []*table.Table
}

// Override may decide the health of an object; known is false for objects that it says nothing of, has is false for those
// that it says have no health. An error of its own it reports as Unknown with a sentence. It keeps its own time limit.
type Override func(ctx context.Context, obj *unstructured.Unstructured) (health v1alpha1.HealthStatus, has, known bool)

// Of is the health of a live object: of one being deleted Progressing; then what the overrides, the tables, the rules of
// Kubernetes' own kinds, the table of known projects and last the conventions of conditions say, whoever knows it first.
func (r Rules) Of(ctx context.Context, obj *unstructured.Unstructured) (v1alpha1.HealthStatus, bool) {
	if obj.GetDeletionTimestamp() != nil {
		return deleting(obj.GetFinalizers()), true
	}
	for _, override := range r.Overrides {
		if health, has, known := override(ctx, obj); known {
			return health, has
		}
	}
	f, kind := field.Map(obj.Object), obj.GroupVersionKind()
	for _, t := range r.Tables {
		if health, has, known := t.Of(kind, f); known {
			return health, has
		}
	}
	if rule, found := ruleFor(kind.GroupKind()); found {
		if rule == nil {
			return v1alpha1.HealthStatus{}, false
		}
		return rule(f), true
	}
	if health, has, known := table.BuiltIn().Of(kind, f); known {
		return health, has
	}
	return generic(f)
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
