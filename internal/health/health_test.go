package health

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// state is a file of a kind's folder and what is said of it; an empty status means that there is no health.
type state struct {
	file    string
	status  v1alpha1.HealthStatusCode
	message string
}

// checkStates reads each file of testdata/folder. A file that no state names is a failure, so that none is forgotten.
func checkStates(t *testing.T, folder string, states []state) {
	t.Helper()
	var named []string
	for _, s := range states {
		named = append(named, s.file+".yaml")
		t.Run(s.file, func(t *testing.T) {
			obj := read(t, filepath.Join("testdata", folder, s.file+".yaml"))
			before := obj.DeepCopy()
			got, ok := Of(obj)
			if ok != (s.status != "") {
				t.Fatalf("has a health: %v, want %v", ok, s.status != "")
			}
			if diff := cmp.Diff(v1alpha1.HealthStatus{Status: s.status, Message: s.message}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
	entries, err := os.ReadDir(filepath.Join("testdata", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(named, entry.Name()) {
			t.Errorf("testdata/%s/%s is not tested", folder, entry.Name())
		}
	}
}

func read(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(json); err != nil {
		t.Fatal(err)
	}
	return obj
}

// Case C029: right after a change the old status still says that all is well.
func TestStaleStatusIsNeverHealthy(t *testing.T) {
	for _, text := range []string{
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`,
		`{apiVersion: demo.example.com/v1, kind: Gadget, metadata: {name: a, generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`,
		`{apiVersion: demo.example.com/v1, kind: Gadget, metadata: {name: a, generation: 3}, status: {observedGeneration: 3, conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`,
	} {
		if got, ok := Of(parse(t, text)); !ok || got.Status != v1alpha1.HealthProgressing {
			t.Errorf("%s: %v, %v; want Progressing", text, got, ok)
		}
	}
}

func TestKindsWithoutHealth(t *testing.T) {
	for _, text := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {status: x}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: a}}`,
		`{apiVersion: v1, kind: Node, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False"}]}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, generation: 4}}`,
		`{apiVersion: demo.example.com/v1, kind: Gadget, metadata: {name: a}, status: {conditions: [nonsense, 1], observedGeneration: nonsense}}`,
	} {
		if got, ok := Of(parse(t, text)); ok {
			t.Errorf("%s: %v, want none", text, got)
		}
	}
}

// A status of the wrong shape must not panic, and must not pass for healthy where a controller should have reported.
func TestStatusOfTheWrongShape(t *testing.T) {
	for _, kind := range []string{"apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "batch/v1 Job", "v1 Pod", "policy/v1 PodDisruptionBudget", "v1 PersistentVolumeClaim", "autoscaling/v2 HorizontalPodAutoscaler", "networking.k8s.io/v1 Ingress"} {
		version, name, _ := strings.Cut(kind, " ")
		obj := parse(t, "{apiVersion: "+version+", kind: "+name+", metadata: {name: a, generation: 1}, spec: [], status: {phase: 3, conditions: {type: Ready}, containerStatuses: x, loadBalancer: []}}")
		if got, ok := Of(obj); !ok || got.Status == v1alpha1.HealthHealthy {
			t.Errorf("%s: %v, %v", kind, got, ok)
		}
	}
}

// A cluster has many objects that nobody knows; they are looked at whenever they change.
func BenchmarkOf(b *testing.B) {
	for name, text := range map[string]string{
		"unknown":  `{apiVersion: demo.example.com/v1, kind: Gadget, metadata: {name: a}}`,
		"core":     `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		"wildcard": `{apiVersion: s3.services.k8s.aws/v1alpha1, kind: Bucket, metadata: {name: a}, status: {conditions: [{type: Ready, status: "True"}]}}`,
		"pod":      `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`,
	} {
		json, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			b.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(json); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Of(obj)
			}
		})
	}
}
