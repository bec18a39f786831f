package health

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// rule is the health of objects of one kind.
type rule func(field.Map) v1alpha1.HealthStatus

// known is a kind that has a rule of its own, with the rule in words for docs/health.md. One without a rule has no health,
// whatever its conditions say.
type known struct {
	kind, group string
	rule        rule
	words       string
}

// kinds are the kinds of Kubernetes itself, and those of ours.
func kinds() []known {
	const apps, batch, ours = "apps", "batch", v1alpha1.Group
	return []known{
		{"Pod", "", pod, "ready, or ended well where it is meant to end; Degraded when a container that is meant to stay can not start or stops again"},
		{"Service", "", service, "of type LoadBalancer: has an address"},
		{"PersistentVolumeClaim", "", persistentVolumeClaim, "bound; Degraded when its volume is lost"},
		{"PersistentVolume", "", persistentVolume, "its phase"},
		{"Namespace", "", namespace, "active"},
		{"ReplicationController", "", replicationController, "as many pods available as asked for"},
		{"Node", "", nil, "none: it comes and goes with the machine under it"},
		{"Deployment", apps, deployment, "all replicas updated, no old ones left, all available; Degraded past its progress deadline; Suspended while paused"},
		{"StatefulSet", apps, statefulSet, "all replicas ready and updated down to the partition"},
		{"DaemonSet", apps, daemonSet, "updated and available on every node"},
		{"ReplicaSet", apps, replicaSet, "as many pods available as asked for"},
		{"Job", batch, job, "complete; Degraded when failed; Suspended while suspended"},
		{"CronJob", batch, cronJob, "its last run; Suspended while suspended"},
		{"HorizontalPodAutoscaler", "autoscaling", horizontalPodAutoscaler, "able to scale; Degraded without metrics or scale"},
		{"Ingress", "networking.k8s.io", ingress, "has an address"},
		{"Ingress", "extensions", ingress, "has an address"},
		{"ServiceCIDR", "networking.k8s.io", serviceCIDR, "ready"},
		{"APIService", "apiregistration.k8s.io", apiService, "the server behind it answers"},
		{"PodDisruptionBudget", "policy", podDisruptionBudget, "its controller can count its pods"},
		{"CustomResourceDefinition", "apiextensions.k8s.io", customResourceDefinition, "served; Degraded when its names or its schema are refused"},
		{"CertificateSigningRequest", "certificates.k8s.io", certificateSigningRequest, "has its certificate; Degraded when denied or failed"},
		{"PodCertificateRequest", "certificates.k8s.io", certificateSigningRequest, "has its certificate; Degraded when denied or failed"},
		{"FlowSchema", "flowcontrol.apiserver.k8s.io", flowSchema, "Degraded when its priority level is not there"},
		{"VolumeAttachment", "storage.k8s.io", volumeAttachment, "attached; Degraded when that fails"},
		{"ResourceClaim", "resource.k8s.io", resourceClaim, "Degraded when a device is not ready; well while no pod uses it"},
		{"ValidatingAdmissionPolicy", "admissionregistration.k8s.io", validatingAdmissionPolicy, "Degraded when an expression does not fit the types"},
		{"StorageVersionMigration", "storagemigration.k8s.io", storageVersionMigration, "complete; Degraded when failed"},
		{v1alpha1.ApplicationKind, ours, application, "that of the application, once it has been compared with its present source"},
		{"Workflow", ours, workflow, "its phase"},
	}
}

// byKind files the rules once.
var byKind = sync.OnceValue(func() map[schema.GroupKind]rule {
	rules := map[schema.GroupKind]rule{}
	for _, k := range kinds() {
		rules[schema.GroupKind{Group: k.group, Kind: k.kind}] = k.rule
	}
	return rules
})

// ruleFor finds the rule of a kind; it is nil for one that is known to have no health.
func ruleFor(kind schema.GroupKind) (rule, bool) {
	rule, found := byKind()[kind]
	return rule, found
}
