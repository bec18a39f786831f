// Package handover owns the question who keeps an Application in step, Lockstep or Argo CD, where both are there: the marks
// on the Application by which one leaves it to the other, and the reading of what its managedFields show of Argo CD at work
// (DESIGN.md §2.5, issue 3 item 5). It is pure; time arrives as an argument. It may depend on manifest only.
//
// The marks, in the order in which they are set:
//
//	adopt:   skip-reconcile "true", adopted "pending"     Argo CD lets go; nobody writes
//	         label manager "lockstep", adopted TIME       Lockstep begins
//	release: label manager "argocd", skip-reconcile "true", releasing "asked"
//	                                                      Lockstep lets go, and says so: releasing "let-go"
//	         skip-reconcile and releasing gone            Argo CD begins
//
// Each step may be made again, so that a hand-over that was cut off goes on where it was.
package handover

import (
	"bytes"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

const (
	// ManagerLabel says who keeps the Application: Lockstep or ArgoCD. Without it nothing is said.
	ManagerLabel = "lockstep.dev/manager"
	// Lockstep is the value of ManagerLabel by which Lockstep keeps the Application.
	Lockstep = "lockstep"
	// ArgoCD is the value by which Argo CD does.
	ArgoCD = "argocd"

	// SkipAnnotation set to "true" keeps Argo CD away; on an Application without ManagerLabel it pauses Lockstep, too.
	SkipAnnotation = "argocd.argoproj.io/skip-reconcile"
	// PausedAnnotation set to "true" pauses Lockstep, whatever SkipAnnotation says.
	PausedAnnotation = "lockstep.dev/skip-reconcile"
	// AdoptedAnnotation is Pending while Argo CD is being waited for, and then the time of Argo CD's last write (RFC 3339),
	// or Never: what it writes later, it writes against the hand-over.
	AdoptedAnnotation = "lockstep.dev/adopted"
	// ReleasingAnnotation is Asked while Lockstep has to let go, and LetGo when it has said that it did.
	ReleasingAnnotation = "lockstep.dev/releasing"

	// Pending is the value of AdoptedAnnotation while Argo CD is being waited for.
	Pending = "pending"
	// Never is its value where Argo CD never wrote the Application.
	Never = "never"
	// Asked is the value of ReleasingAnnotation while Lockstep has to let go.
	Asked = "asked"
	// LetGo is its value once it did.
	LetGo = "let-go"

	refreshAnnotation = "argocd.argoproj.io/refresh"
)

// Marks are all the annotations, for those who have to keep them on an Application.
func Marks() []string {
	return []string{SkipAnnotation, AdoptedAnnotation, PausedAnnotation, ReleasingAnnotation}
}

// Adopted tells that the Application was handed to Lockstep and Argo CD told to leave it.
func Adopted(o metav1.Object) bool {
	at := o.GetAnnotations()[AdoptedAnnotation]
	return o.GetLabels()[ManagerLabel] == Lockstep && o.GetAnnotations()[SkipAnnotation] == "true" && at != "" && at != Pending
}

// Pledged tells that the Application is Argo CD's, or on the way from one to the other: Lockstep does not touch it.
func Pledged(o metav1.Object) bool {
	a := o.GetAnnotations()
	return o.GetLabels()[ManagerLabel] == ArgoCD || a[AdoptedAnnotation] == Pending || a[ReleasingAnnotation] != ""
}

// Paused tells that somebody asked Lockstep to leave the Application as it is.
func Paused(o metav1.Object) bool { return PausedBy(o) != "" }

// PausedBy is the annotation by which somebody asked Lockstep to leave the Application as it is.
func PausedBy(o metav1.Object) string {
	a := o.GetAnnotations()
	switch {
	case a[PausedAnnotation] == "true":
		return PausedAnnotation
	case a[SkipAnnotation] == "true" && o.GetLabels()[ManagerLabel] != Lockstep:
		return SkipAnnotation
	}
	return ""
}

// theirController is the field manager that Argo CD writes an Application's status as.
const theirController = "argocd-application-controller"

// Claim is what an Application's managedFields show: when Argo CD's controller and ours last wrote it. The times are the API
// server's, to the second; zero means never.
type Claim struct {
	Theirs, Ours time.Time
}

// ClaimOf reads the managedFields of an Application.
func ClaimOf(fields []metav1.ManagedFieldsEntry) Claim {
	var c Claim
	for _, f := range fields {
		if f.Time == nil || f.FieldsV1 == nil || !bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:status"`)) {
			continue
		}
		at := &c.Theirs
		switch f.Manager {
		case theirController:
		case manifest.FieldManager:
			at = &c.Ours
		default:
			continue
		}
		if f.Time.After(*at) {
			*at = f.Time.Time
		}
	}
	return c
}

// AdoptedAt is the value of AdoptedAnnotation for an Application with this claim.
func (c Claim) AdoptedAt() string {
	if c.Theirs.IsZero() {
		return Never
	}
	return c.Theirs.UTC().Format(time.RFC3339)
}
