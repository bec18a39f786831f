package health

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// Evaluator is a script or an expression that decides the health of an object; false means that it has none. It does not
// change the object and keeps its own limits.
type Evaluator interface {
	Health(ctx context.Context, object map[string]any) (v1alpha1.HealthStatus, bool, error)
}

// OverrideFor asks an evaluator about the objects of one kind, named <group>_<Kind> as in Argo CD's settings, or <Kind> for
// one without group; * stands for any characters. One that fails makes them Unknown, with its error as the sentence.
func OverrideFor(name string, e Evaluator) Override {
	return func(ctx context.Context, obj *unstructured.Unstructured) (v1alpha1.HealthStatus, bool, bool) {
		kind := obj.GroupVersionKind()
		of := kind.Group + "_" + kind.Kind
		if kind.Group == "" {
			of = kind.Kind
		}
		if fits, err := path.Match(name, of); err != nil || !fits {
			return v1alpha1.HealthStatus{}, false, false
		}
		status, has, err := e.Health(ctx, obj.Object)
		if err != nil {
			return unknown(err.Error()), true, true
		}
		return status, has, true
	}
}

// Answer is the health that an evaluator returned as texts. The message becomes one that changes only with the cause.
func Answer(status, message string) (v1alpha1.HealthStatus, error) {
	code := v1alpha1.HealthStatusCode(status)
	switch code {
	case v1alpha1.HealthHealthy, v1alpha1.HealthProgressing, v1alpha1.HealthDegraded, v1alpha1.HealthSuspended, v1alpha1.HealthMissing, v1alpha1.HealthUnknown:
		return v1alpha1.HealthStatus{Status: code, Message: steady.Message(message)}, nil
	}
	return v1alpha1.HealthStatus{}, fmt.Errorf("it returned the status %q; return Healthy, Progressing, Degraded, Suspended, Missing or Unknown", steady.Message(status))
}

// Names are the kinds that settings with a prefix are about, in the order in which they are asked: those without wildcards
// first, each group by name.
func Names(settings map[string]string, prefix string) []string {
	var plain, wild []string
	for key := range settings {
		name, ok := strings.CutPrefix(key, prefix)
		switch {
		case !ok || name == "":
		case strings.Contains(name, "*"):
			wild = append(wild, name)
		default:
			plain = append(plain, name)
		}
	}
	slices.Sort(plain)
	slices.Sort(wild)
	return append(plain, wild...)
}
