package cause

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/field"
)

func TestChain(t *testing.T) {
	e := example{objects: append([]string{
		`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, namespace: argocd, uid: u-app}, health: "Progressing: 1 object waits"}`,
		object("Service", "v1", "web", "", `health: Healthy`),
	}, web(waiting("CreateContainerConfigError", `secret "password" not found`)+`, health: "Degraded: container app can not start (CreateContainerConfigError)"`)...)}
	got, _ := Of(e.input(t, 0))
	want := Cause{
		Reason:   SecretMissing,
		Sentence: "Deployment shop/web: container app needs Secret shop/password, which is not there",
		Next:     "create it, or correct its name; look at what should make it",
		Chain: []Link{
			{"Application argocd/shop", "Progressing: 1 object waits"},
			{"Deployment shop/web", "Progressing: the rollout waits for pods to become available"},
			{"ReplicaSet shop/web-6d4cf56db6", ""},
			{"Pod shop/web-…", "Degraded: container app can not start (CreateContainerConfigError)"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhichCauseIsTold(t *testing.T) {
	app := `{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, namespace: argocd, uid: u-app}, health: "Degraded: x"}`
	lost := object("PersistentVolumeClaim", "v1", "data", "", "status: {phase: Lost}")
	gadget := func(name, health string) string {
		return object("Gadget", "example.com/v1", name, "", `health: "`+health+`"`)
	}
	checkAll(t, []example{
		{"all is well", "", "", []string{`{kind: Deployment, apiVersion: apps/v1, metadata: {name: a}, health: Healthy, status: {conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]}}`}, nil, ""},
		{"what is well is passed over", Unhealthy, "Application argocd/shop: x", []string{app, object("PersistentVolumeClaim", "v1", "data", "", "health: Healthy, status: {phase: Lost}")}, nil, ""},
		{"nobody knows anything", "", "", []string{`{kind: Gadget, apiVersion: example.com/v1, metadata: {name: a}}`}, nil, ""},
		{"the graver of two", ClaimLost, "PersistentVolumeClaim shop/data: its volume is gone", []string{app, gadget("a", "Degraded: broken"), lost}, nil, ""},
		{"the first by name of two alike", Unhealthy, "Gadget shop/a: broken", []string{app, gadget("b", "Degraded: broken"), gadget("a", "Degraded: broken")}, nil, ""},
		{"what failed before what waits", Unhealthy, "Gadget shop/b: broken", []string{app, gadget("a", "Progressing: waits"), gadget("b", "Degraded: broken")}, nil, ""},
	})
}

// Owner references in a circle, to itself and to nobody end in a tree all the same.
func TestOwnersInACircle(t *testing.T) {
	checkAll(t, []example{{"circle", Unhealthy, "B shop/b: broken", []string{
		`{apiVersion: v1, kind: Root, metadata: {name: r, namespace: shop, uid: u-r, ownerReferences: [{uid: u-b}]}}`,
		`{apiVersion: v1, kind: A, metadata: {name: a, namespace: shop, uid: u-a, ownerReferences: [{uid: u-b}]}}`,
		`{apiVersion: v1, kind: B, metadata: {name: b, namespace: shop, uid: u-b, ownerReferences: [{uid: u-a}, {uid: u-b}, {uid: none}]}, health: "Degraded: broken"}`,
	}, nil, ""}})
}

// Both forms of Events are read, and the newest is believed.
func TestEvents(t *testing.T) {
	in := example{objects: []string{object("PersistentVolumeClaim", "v1", "data", "", "status: {phase: Pending}")}}.input(t, 0)
	about := map[string]any{"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data"}
	in.Events = []field.Map{
		{"reason": "ProvisioningFailed", "note": `storageclass.storage.k8s.io "old" not found`, "regarding": about, "eventTime": "2026-03-01T09:00:00.000000Z"},
		{"reason": "ProvisioningFailed", "note": `storageclass.storage.k8s.io "new" not found`, "regarding": about, "eventTime": "2026-03-01T08:00:00.000000Z", "series": map[string]any{"lastObservedTime": "2026-03-01T11:00:00.000000Z"}},
		{"reason": "ProvisioningFailed", "message": "of another", "involvedObject": map[string]any{"kind": "PersistentVolumeClaim", "namespace": "other", "name": "data"}, "lastTimestamp": "2026-03-01T12:00:00Z"},
		{}, {"involvedObject": "x", "reason": 3},
	}
	if got, _ := Of(in); got.Sentence != "PersistentVolumeClaim shop/data: StorageClass new is not there" {
		t.Error(got.Sentence)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		text   string
		reason Reason
		want   string
	}{
		{`no matches for kind "Gadget" in version "example.com/v1"`, KindMissing, "the cluster does not know the kind Gadget of example.com/v1"},
		{`the server could not find the requested resource`, KindMissing, "the cluster does not know its kind"},
		{`namespaces "shop" not found`, NamespaceMissing, "namespace shop is not there"},
		{`gadgets.example.com "g" is forbidden: unable to create new content in namespace shop because it is being terminated`, NamespaceTerminating, "namespace shop is being deleted"},
		{`Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`, OwnershipConflict, "kubectl owns a field that it sets: .spec.replicas"},
		{"Apply failed with 2 conflicts: conflicts with \"helm\":\n- .spec.a\n- .spec.b", OwnershipConflict, "helm owns a field that it sets: .spec.a"},
		{`Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable`, FieldImmutable, "a field of it can not be changed: spec.selector"},
		{`Service "web" is invalid: spec.ports: Required value`, Invalid, "the API server finds it invalid: spec.ports: Required value"},
		{`pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group "" in the namespace "shop"`, Forbidden, `system:serviceaccount:a:b may not create resource "pods"`},
		{`Get "https://10.1.2.3:6443/version": dial tcp 10.1.2.3:6443: connect: connection refused`, ClusterUnreachable, "the cluster can not be reached: connection refused"},
		{`gadgets "g" is forbidden: not today`, Forbidden, "it is forbidden: not today"},
	} {
		got, ok := OfRefusal("Gadget shop/g", c.text)
		if !ok || got.Reason != c.reason || got.Sentence != "Gadget shop/g: "+c.want {
			t.Errorf("%s\ngot  %s %s\nwant %s %s", c.text, got.Reason, got.Sentence, c.reason, c.want)
		}
	}
	if got, ok := OfRefusal("Gadget shop/g", "something odd"); ok {
		t.Errorf("an unknown text gives %v", got)
	}
}

// Objects of the wrong shape must not panic.
func TestWrongShapes(t *testing.T) {
	for _, kind := range []string{"v1 Pod", "apps/v1 Deployment", "apps/v1 ReplicaSet", "batch/v1 Job", "autoscaling/v2 HorizontalPodAutoscaler", "v1 PersistentVolumeClaim", "v1 Namespace", "v1 Service", "cert-manager.io/v1 Certificate", "s3.services.k8s.aws/v1 Bucket"} {
		var version, name string
		for i, c := range kind {
			if c == ' ' {
				version, name = kind[:i], kind[i+1:]
			}
		}
		for _, rest := range []string{"status: x, spec: []", "status: {conditions: {type: x}, containerStatuses: [1, {state: x}], phase: 3}", "spec: {volumes: x}"} {
			Of(example{objects: []string{object(name, version, "a", "", rest), "{}"}}.input(t, 0))
		}
	}
}
