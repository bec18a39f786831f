package handover

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Released tells that the Application is Argo CD's, by a hand-over that is complete.
func Released(o metav1.Object) bool {
	return o.GetLabels()[ManagerLabel] == ArgoCD && o.GetAnnotations()[ReleasingAnnotation] == "" && o.GetAnnotations()[AdoptedAnnotation] == ""
}

// Since tells whether Argo CD has written an adopted Application since its adoption.
func (c Claim) Since(o metav1.Object) bool {
	return !c.Theirs.IsZero() && c.after(o.GetAnnotations()[AdoptedAnnotation])
}

// The steps are merge patches of metadata. One that is made again leaves what it made.

// Ask tells Argo CD to leave the Application. One that was paused before stays paused.
func Ask(app *v1alpha1.Application, _ Claim) map[string]any {
	annotations := map[string]any{SkipAnnotation: "true", AdoptedAnnotation: Pending, ReleasingAnnotation: nil}
	if Paused(app) && !underway(app) {
		annotations[PausedAnnotation] = "true"
	}
	return map[string]any{"annotations": annotations}
}

// Adopt hands the Application to Lockstep.
func Adopt(_ *v1alpha1.Application, c Claim) map[string]any {
	return map[string]any{
		"labels":      map[string]any{ManagerLabel: Lockstep},
		"annotations": map[string]any{SkipAnnotation: "true", AdoptedAnnotation: c.AdoptedAt()},
	}
}

// Leave asks Lockstep to let go, while Argo CD is still kept away.
func Leave(app *v1alpha1.Application, _ Claim) map[string]any {
	annotations := map[string]any{SkipAnnotation: "true", AdoptedAnnotation: nil, ReleasingAnnotation: Asked}
	if Paused(app) && !underway(app) {
		annotations[PausedAnnotation] = "true"
	}
	return map[string]any{"labels": map[string]any{ManagerLabel: ArgoCD}, "annotations": annotations}
}

// Alone says in Lockstep's place that it has let go, where none runs.
func Alone(*v1alpha1.Application, Claim) map[string]any {
	return map[string]any{"annotations": map[string]any{ReleasingAnnotation: LetGo}}
}

// Release hands the Application to Argo CD and asks for a look. One that was paused stays so.
func Release(app *v1alpha1.Application, _ Claim) map[string]any {
	if Released(app) {
		return map[string]any{}
	}
	annotations := map[string]any{ReleasingAnnotation: nil, PausedAnnotation: nil, refreshAnnotation: "normal"}
	if app.Annotations[PausedAnnotation] != "true" {
		annotations[SkipAnnotation] = nil
	}
	return map[string]any{"annotations": annotations}
}

// underway tells that a hand-over has begun, so that SkipAnnotation may be a mark of it.
func underway(app *v1alpha1.Application) bool {
	return app.Annotations[AdoptedAnnotation] != "" || app.Annotations[ReleasingAnnotation] != ""
}
