package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// C014: quantities in other words are the same quantity, and a real change is still seen.
func TestC014Quantities(t *testing.T) {
	w := newWorld(t)
	set := func(cpu string) string {
		return `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: q}
spec:
  replicas: 0
  serviceName: q
  selector: {matchLabels: {app: q}}
  template:
    metadata: {labels: {app: q}}
    spec:
      containers:
      - name: c
        image: ` + oldImage + `
        resources: {requests: {cpu: ` + cpu + `, memory: 1000M}, limits: {cpu: "1.5", memory: 1024Mi}}
  volumeClaimTemplates:
  - metadata: {name: d}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
`
	}
	r := w.repo("c014", map[string]string{"app/q.yaml": set("1000m")})
	w.app("c014", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	w.settled("c014", "")
	w.quiet("c014")
	w.patchApp("c014", `{"spec":{"syncPolicy":null}}`)
	w.refresh("c014", "normal") // else the commit may be met by automated sync that is still on
	w.commit(r, map[string]string{"app/q.yaml": set("1001m")})
	w.until("a real change seen", func() (string, bool) {
		s := w.get("c014").Status.Sync.Status
		return string(s), s == v1alpha1.SyncOutOfSync
	})
	if n := len(w.get("c014").Status.History); n != 1 {
		t.Errorf("%d syncs", n)
	}
}

// C016: a name twice in a list is said by its name, whether or not the cluster has it so already; taking the first one out
// keeps the second.
func TestC016DuplicateEnv(t *testing.T) {
	for name, seeded := range map[string]bool{"empty cluster": false, "adopted": true} {
		t.Run(name, func(t *testing.T) { duplicateEnv(t, seeded) })
	}
}

func duplicateEnv(t *testing.T, seeded bool) {
	w := newWorld(t)
	envs := func(env string) string {
		return strings.Replace(deployment("envs", oldImage, 1), fmt.Sprintf("image: %q", oldImage), fmt.Sprintf("image: %q, env: [%s]", oldImage, env), 1)
	}
	const twice = "{name: MODE, value: one}, {name: ZONE, value: z}, {name: MODE, value: two}"
	if seeded {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(envs(twice)), &u.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := w.resource("apps/v1", "deployments").Create(t.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			t.Fatal(err)
		}
	}
	r := w.repo("c016", map[string]string{"app/envs.yaml": envs(twice)})
	w.app("c016", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	message := w.condition("c016", v1alpha1.ConditionSyncError, "MODE", "envs")
	t.Log(message)
	if !strings.Contains(message, `"c"`) {
		t.Errorf("the container is not named: %s", message)
	}
	sha := w.commit(r, map[string]string{"app/envs.yaml": envs("{name: ZONE, value: z}, {name: MODE, value: two}")})
	w.settled("c016", sha)
	u := w.live("apps/v1", "deployments", "envs")
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	c, _ := list[0].(map[string]any)
	if got := fmt.Sprint(c["env"]); got != "[map[name:ZONE value:z] map[name:MODE value:two]]" {
		t.Errorf("env %s", got)
	}
}
