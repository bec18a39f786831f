package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/handover"
)

func sighting(uid, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{"name": "shop", "namespace": "lockstep", "uid": uid, "resourceVersion": version},
		"spec":     map[string]any{},
	}}
}

// The answer to the write that removes the last finalizer often comes after the watch has told that the application is
// gone. It used to bring the application back, and what it declared could never belong to another one.
func TestAnAnswerDoesNotBringAnApplicationBack(t *testing.T) {
	a := &applications{
		namespace: "lockstep", changed: func(string, *v1alpha1.Application, *v1alpha1.Application) {},
		byKey: map[string]*v1alpha1.Application{}, bad: map[string]error{}, claims: map[string]handover.Claim{},
	}
	has := func(version string) {
		t.Helper()
		app, _ := a.get("lockstep/shop")
		switch {
		case version == "" && app != nil:
			t.Errorf("shop is there at %s, want it gone", app.ResourceVersion)
		case version != "" && (app == nil || app.ResourceVersion != version):
			t.Errorf("shop is %v, want it at %s", app, version)
		}
	}
	a.put(sighting("one", "5"))
	a.answered(sighting("one", "6"))
	has("6")
	if err := a.Delete(sighting("one", "7")); err != nil {
		t.Fatal(err)
	}
	a.answered(sighting("one", "7"))
	has("")
	a.put(sighting("two", "8"))
	a.answered(sighting("one", "9"))
	has("8")
}
