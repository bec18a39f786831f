package engine_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// C029, live: the second wave waits for the rollout of the change, not for the health of what was there before.
func TestC029WavesWaitForTheNewGeneration(t *testing.T) {
	w := newWorld(t)
	web := func(image string) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {dev.lockstep/ready-after: "4s"}}
    spec: {containers: [{name: c, image: %q}]}
`, image)
	}
	r := w.repo("c029", map[string]string{"app/web.yaml": web(wellImage), "app/late.yaml": late("1")})
	w.app("c029", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("c029", "")
	sha := w.commit(r, map[string]string{"app/web.yaml": web("registry.k8s.io/pause:3.10"), "app/late.yaml": late("2")})
	w.until("the second wave", func() (string, bool) {
		data, _ := w.configMap("late")
		if data["k"] != "2" {
			return operation(w.get("c029")), false
		}
		status, _, _ := unstructured.NestedMap(w.live("apps/v1", "deployments", "web").Object, "status")
		if status["observedGeneration"] != int64(2) || status["updatedReplicas"] != int64(1) || status["availableReplicas"] != int64(1) || status["replicas"] != int64(1) {
			t.Errorf("it was applied at %v", status)
		}
		return "", true
	})
	w.settled("c029", sha)
}

// C029: a kind that does not report which generation it has seen is given a moment, which ends when its status moves.
func TestC029KindsThatDoNotReport(t *testing.T) {
	w := newWorld(t)
	group := w.dest + ".example.com" // of this test alone
	gadget := func(size string) string {
		return "apiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {size: " + size + "}\n"
	}
	r := w.repo("g", map[string]string{"app/g.yaml": gadget("s"), "app/late.yaml": late("1"), "app/crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`})
	says := func(ready string) {
		t.Helper()
		_, err := w.resource(group+"/v1", "gadgets").Patch(t.Context(), "g", types.MergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.app("g", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}) // by the timer: nobody reports
	w.settled("g", "")
	says("True")
	w.restart(false, func(o *engine.Options) { o.SettleAfter = time.Hour })
	sha := w.commit(r, map[string]string{"app/g.yaml": gadget("m"), "app/late.yaml": late("2")})
	w.stands("g", "controller of Gadget", "to see the last change")
	if data, _ := w.configMap("late"); data["k"] != "1" {
		t.Error("the second wave was applied on the word of an old status")
	}
	says("False")
	w.stands("g", "to become healthy")
	says("True")
	w.settled("g", sha)
	if data, _ := w.configMap("late"); data["k"] != "2" {
		t.Errorf("late is %v", data)
	}
}
