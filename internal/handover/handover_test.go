package handover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/handover"
)

func noon() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return noon().Add(-d) }

func app(change ...func(*v1alpha1.Application)) *v1alpha1.Application {
	a := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{}, Annotations: map[string]string{}}}
	for _, c := range change {
		c(a)
	}
	return a
}

func adopted(at string) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) {
		a.Labels[handover.ManagerLabel] = handover.Lockstep
		a.Annotations[handover.SkipAnnotation], a.Annotations[handover.AdoptedAnnotation] = "true", at
	}
}

func annotated(name, value string) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) { a.Annotations[name] = value }
}

func TestClaimOf(t *testing.T) {
	entry := func(manager, fields string, at time.Time) metav1.ManagedFieldsEntry {
		when := metav1.NewTime(at)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	got := handover.ClaimOf([]metav1.ManagedFieldsEntry{
		entry("argocd-application-controller", `{"f:status":{"f:health":{}}}`, ago(3*time.Minute)),
		entry("argocd-application-controller", `{"f:operation":{}}`, ago(time.Minute)), // no look of the controller at it
		entry("argocd-server", `{"f:status":{}}`, ago(time.Minute)),
		entry("lockstep", `{"f:status":{"f:sync":{}}}`, ago(2*time.Minute)),
		entry("lockstep-cli", `{"f:status":{"f:operationState":{}}}`, ago(time.Second)),
		{Manager: "lockstep"},
	})
	if diff := cmp.Diff(handover.Claim{Theirs: ago(3 * time.Minute), Ours: ago(2 * time.Minute)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestContested(t *testing.T) {
	const controller = "StatefulSet argocd/argocd-application-controller"
	minute := time.Minute
	for name, c := range map[string]struct {
		app   *v1alpha1.Application
		claim handover.Claim
		about handover.Evidence
		kind  handover.Kind
		says  string
	}{
		"nobody else":                      {app: app()},
		"Argo CD's controller runs":        {app: app(), about: handover.Evidence{Controller: controller}, kind: handover.Running, says: "(" + controller + " runs); run `lockstep adopt shop`"},
		"it wrote lately":                  {app: app(), claim: handover.Claim{Theirs: ago(minute)}, kind: handover.Written, says: "wrote its status at 2026-05-04T11:59:00Z"},
		"it wrote after us":                {app: app(), claim: handover.Claim{Theirs: ago(minute), Ours: ago(2 * minute)}, kind: handover.Written},
		"within our second":                {app: app(), claim: handover.Claim{Theirs: ago(minute), Ours: ago(minute)}, kind: handover.Written},
		"it wrote before us":               {app: app(), claim: handover.Claim{Theirs: ago(2 * minute), Ours: ago(minute)}},
		"it wrote long ago":                {app: app(), claim: handover.Claim{Theirs: ago(handover.Recent)}},
		"it wrote a neighbour":             {app: app(), about: handover.Evidence{Seen: ago(minute), On: "till"}, kind: handover.Neighbour, says: "wrote application till"},
		"we wrote after it wrote one":      {app: app(), claim: handover.Claim{Ours: ago(minute)}, about: handover.Evidence{Seen: ago(2 * minute), On: "till"}},
		"adopted":                          {app: app(adopted("2026-05-04T11:59:00Z")), claim: handover.Claim{Theirs: ago(minute)}, about: handover.Evidence{Controller: controller, Seen: ago(0)}},
		"adopted, never written":           {app: app(adopted(handover.Never))},
		"written since its adoption":       {app: app(adopted("2026-05-04T11:58:00Z")), claim: handover.Claim{Theirs: ago(minute)}, kind: handover.WrittenSince, says: "although it was handed over"},
		"first written since its adoption": {app: app(adopted(handover.Never)), claim: handover.Claim{Theirs: ago(minute)}, kind: handover.WrittenSince},
		"long ago since its adoption":      {app: app(adopted("2026-05-04T10:00:00Z")), claim: handover.Claim{Theirs: ago(time.Hour)}},
		"adopted, Argo CD let in again": {
			app:   app(adopted(handover.Never), annotated(handover.SkipAnnotation, "")),
			about: handover.Evidence{Controller: controller}, kind: handover.Running, says: "the marks of the hand-over are incomplete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.about.Now = noon()
			got := handover.Contested(c.app, c.claim, c.about)
			if got.Kind != c.kind || !strings.Contains(got.Reason, c.says) || (got.Reason == "") != (c.kind == handover.None) {
				t.Errorf("%d %q", got.Kind, got.Reason)
			}
			if !got.Until.IsZero() && !got.Until.After(noon()) {
				t.Errorf("the evidence ended at %s", got.Until)
			}
		})
	}
}

// The steps lead there and back, and one that is made again changes nothing; who was paused is paused on every way.
func TestSteps(t *testing.T) {
	for name, paused := range map[string]bool{"working": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			a := app()
			if paused {
				a.Annotations[handover.SkipAnnotation] = "true"
			}
			c := handover.Claim{Theirs: ago(time.Minute)}
			step := func(s func(*v1alpha1.Application, handover.Claim) map[string]any) {
				t.Helper()
				merge(a, s(a, c))
				once := a.DeepCopy()
				merge(a, s(a, c))
				if diff := cmp.Diff(once, a); diff != "" {
					t.Errorf("made again: %s", diff)
				}
			}
			state := func(what string, adopted, released, pledged, stopped bool) {
				t.Helper()
				got := []bool{handover.Adopted(a), handover.Released(a), handover.Pledged(a), handover.Paused(a)}
				if diff := cmp.Diff([]bool{adopted, released, pledged, stopped}, got); diff != "" {
					t.Errorf("%s: adopted, released, pledged, paused: %s\n%v %v", what, diff, a.Labels, a.Annotations)
				}
			}
			for range 2 {
				step(handover.Ask)
				state("asked", false, false, true, true)
				step(handover.Adopt)
				state("adopted", true, false, false, paused)
				step(handover.Leave)
				state("left", false, false, true, true)
				step(handover.Alone)
				state("let go", false, false, true, true)
				step(handover.Release)
				state("released", false, true, true, paused)
			}
			// Cut off on the way to Lockstep, it can go back at once.
			step(handover.Ask)
			step(handover.Leave)
			step(handover.Release)
			state("turned back", false, true, true, paused)
		})
	}
}

// merge is a merge patch of metadata.
func merge(a *v1alpha1.Application, metadata map[string]any) {
	for part, into := range map[string]map[string]string{"labels": a.Labels, "annotations": a.Annotations} {
		values, _ := metadata[part].(map[string]any)
		for k, v := range values {
			if v == nil {
				delete(into, k)
			} else {
				into[k] = v.(string)
			}
		}
	}
}
