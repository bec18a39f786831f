package health

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/health/table"
)

func TestWhoKnowsFirstDecides(t *testing.T) {
	own, err := table.Parse("own.yaml", []byte(`
- {project: own, source: own, kinds: [Deployment.apps, Bucket.s3.aws.upbound.io], otherwise: {health: Suspended, message: by the table}}
- {project: own, source: own, kinds: [Service.], otherwise: {health: None}}
`))
	if err != nil {
		t.Fatal(err)
	}
	jobs := func(_ context.Context, obj *unstructured.Unstructured) (v1alpha1.HealthStatus, bool, bool) {
		return v1alpha1.HealthStatus{Status: v1alpha1.HealthUnknown, Message: "by the override"}, true, obj.GetKind() == "Job" || obj.GetName() == "override"
	}
	for _, c := range []struct {
		name, object, want string
		rules              Rules
	}{
		{"a kind of Kubernetes", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}}`, "it is running", Rules{}},
		{"an override", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}}`, "by the override", Rules{Overrides: []Override{jobs}}},
		{"a table over a kind of Kubernetes", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`, "by the table", Rules{Tables: []*table.Table{own}}},
		{"a table over what is built in", `{apiVersion: s3.aws.upbound.io/v1, kind: Bucket, metadata: {name: a}}`, "by the table", Rules{Tables: []*table.Table{own}}},
		{"an override over a table", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: override}}`, "by the override", Rules{Overrides: []Override{jobs}, Tables: []*table.Table{own}}},
		{"the built-in table", `{apiVersion: s3.aws.upbound.io/v1, kind: Bucket, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False", reason: Creating}]}}`, "Ready is False: Creating", Rules{}},
		{"the conventions", `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False"}]}}`, "Ready is False", Rules{}},
		{"being deleted", `{apiVersion: batch/v1, kind: Job, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, "it is being deleted", Rules{Overrides: []Override{jobs}}},
		{"no health by a table", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}`, "", Rules{Tables: []*table.Table{own}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := c.rules.Of(context.Background(), parse(t, c.object)); got.Message != c.want {
				t.Errorf("%s %q, want %q", got.Status, got.Message, c.want)
			}
		})
	}
}

// Kinds that are neither Kubernetes' nor in the table keep their conventions although the table has entries for any kind.
func TestTableLeavesOtherKindsAlone(t *testing.T) {
	if got, ok := Of(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, generation: 1}, spec: {}}`)); ok {
		t.Errorf("a ConfigMap is %v", got)
	}
}
