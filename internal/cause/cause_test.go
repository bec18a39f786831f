package cause

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// example is a state of a cluster and its cause; an empty reason means that there is none.
type example struct {
	name     string
	reason   Reason
	sentence string
	// objects, the first is the one asked about. A field health at the top is taken for the health that was found.
	objects []string
	// events as "Kind/name reason: message", the newest first.
	events []string
	// line is the last line of each container's log.
	line string
}

func checkAll(t *testing.T, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			got, ok := Of(e.input(t, 0))
			if ok != (e.reason != "") || got.Reason != e.reason || got.Sentence != e.sentence {
				t.Errorf("got  %s %s\nwant %s %s", got.Reason, got.Sentence, e.reason, e.sentence)
			}
			if ok && (got.Next == "" || len(got.Chain) == 0) {
				t.Errorf("no next step or no chain: %+v", got)
			}
			// The same an hour later, with pods of other names, other addresses, times and numbers of nodes.
			later, _ := Of(e.input(t, 1))
			if diff := cmp.Diff(got, later); diff != "" {
				t.Errorf("not stable (-then +later):\n%s", diff)
			}
		})
	}
}

// later replaces what changes while the cause does not.
var later = strings.NewReplacer("x8x2p", "b7k9z", "10.1.2.3", "10.9.8.7", "0/3 nodes", "0/5 nodes", "1 Insufficient", "4 Insufficient",
	"2 node(s)", "5 node(s)", "restartCount: 3", "restartCount: 40", "2026-03-01T10", "2026-03-01T11", "5m0s", "40s", "has 2 resource", "has 7 resource")

func (e example) input(t *testing.T, change int) Input {
	t.Helper()
	turn := func(text string) string {
		if change > 0 {
			return later.Replace(text)
		}
		return text
	}
	in := Input{}
	for i, text := range e.objects {
		object := parse(t, turn(text))
		if i == 0 {
			in.Root = object
		} else {
			in.Subtree = append(in.Subtree, object)
		}
	}
	for i, text := range e.events {
		about, message, _ := strings.Cut(turn(text), ": ")
		object, reason, _ := strings.Cut(about, " ")
		kind, name, _ := strings.Cut(object, "/")
		in.Events = append(in.Events, field.Map{
			"reason": reason, "message": message, "lastTimestamp": fmt.Sprintf("2026-03-01T%d:%02d:00Z", 10+change, 59-i),
			"involvedObject": map[string]any{"kind": kind, "namespace": "shop", "name": name},
		})
	}
	if e.line != "" {
		in.LastLine = func(_, _, _ string) string { return e.line }
	}
	return in
}

func parse(t *testing.T, text string) Object {
	t.Helper()
	fields := field.Map{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	status, message, _ := strings.Cut(fields.Text("health"), ": ")
	delete(fields, "health")
	return Object{Fields: fields, Health: v1alpha1.HealthStatus{Status: v1alpha1.HealthStatusCode(status), Message: message}}
}

// object is an object of namespace shop, with its owner's name.
func object(kind, version, name, owner, rest string) string {
	refs := ""
	if owner != "" {
		refs = fmt.Sprintf(", ownerReferences: [{kind: X, name: %s, uid: u-%s}]", owner, owner)
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: shop, uid: u-%s%s}, %s}", version, kind, name, name, refs, rest)
}

// web is a Deployment with its set of pods and one pod.
func web(podRest string) []string {
	return []string{
		object("Deployment", "apps/v1", "web", "", `health: "Progressing: the rollout waits for pods to become available"`),
		object("ReplicaSet", "apps/v1", "web-6d4cf56db6", "web", "status: {}"),
		object("Pod", "v1", "web-6d4cf56db6-x8x2p", "web-6d4cf56db6", podRest),
	}
}

// waiting is a pod whose container app waits.
func waiting(reason, message string) string {
	return fmt.Sprintf(`status: {phase: Pending, containerStatuses: [{name: app, image: "example.com/shop:2", restartCount: 3, state: {waiting: {reason: %s, message: %q}}}]}`, reason, message)
}

const onPod = "Pod/web-6d4cf56db6-x8x2p "

func TestImages(t *testing.T) {
	const pull = `Failed to pull image "example.com/shop:2": `
	who := "Deployment shop/web: container app can not pull image example.com/shop:2"
	checkAll(t, []example{
		{"not found", ImageNotFound, who + ": there is no such image", web(waiting("ErrImagePull", `rpc error: code = NotFound desc = failed to pull and unpack image "example.com/shop:2": failed to resolve reference "example.com/shop:2": example.com/shop:2: not found`)), nil, ""},
		{"not found, in the back-off", ImageNotFound, who + ": there is no such image", web(waiting("ImagePullBackOff", `Back-off pulling image "example.com/shop:2"`)), []string{onPod + "BackOff: Back-off pulling image", onPod + "Failed: Error: ErrImagePull", onPod + "Failed: " + pull + "rpc error: manifest unknown: manifest unknown"}, ""},
		{"no permission", ImageForbidden, who + ": the registry gives no permission, or has no such repository", web(waiting("ErrImagePull", `failed to pull image "example.com/shop:2": failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized`)), nil, ""},
		{"a private repository", ImageForbidden, who + ": the registry gives no permission, or has no such repository", web(waiting("ErrImagePull", `image "example.com/shop:2": pull access denied, repository does not exist or may require authorization`)), nil, ""},
		{"rate limit", ImageRateLimited, who + ": the registry limits how often images are pulled", web(waiting("ErrImagePull", `image "example.com/shop:2": 429 Too Many Requests - toomanyrequests: You have reached your pull rate limit`)), nil, ""},
		{"registry away", RegistryAway, who + ": the registry can not be reached", web(waiting("ErrImagePull", `image "example.com/shop:2": dial tcp: lookup example.com on 10.1.2.3:53: no such host`)), nil, ""},
		{"refused connection", RegistryAway, who + ": the registry can not be reached", web(waiting("ErrImagePull", `image "example.com/shop:2": dial tcp 10.1.2.3:443: connect: connection refused`)), nil, ""},
		{"wrong platform", ImagePlatform, who + ": it is not built for the node's platform", web(waiting("ErrImagePull", `image "example.com/shop:2": no match for platform in manifest: not found`)), nil, ""},
		{"nobody says why", ImageNotPulled, who, web(waiting("ImagePullBackOff", `Back-off pulling image "example.com/shop:2"`)), nil, ""},
		{"no image name", ImageName, "Deployment shop/web: container app has an image name that is none: example.com/shop:2", web(waiting("InvalidImageName", "couldn't parse image name")), nil, ""},
		{"a tag is no status code", ImageNotPulled, "Pod shop/a: container app can not pull image example.com/404:429", []string{`{kind: Pod, apiVersion: v1, metadata: {name: a, namespace: shop}, status: {containerStatuses: [{name: app, image: "example.com/404:429", state: {waiting: {reason: ErrImagePull, message: "example.com/404:429: odd"}}}]}}`}, nil, ""},
	})
}

func TestContainers(t *testing.T) {
	crash := func(last string) string {
		return `spec: {containers: [{name: app, resources: {limits: {memory: 64Mi}}}]}, status: {phase: Running, containerStatuses: [{name: app, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 5m0s restarting failed container"}}, lastState: {terminated: {` + last + `}}}]}`
	}
	running := `status: {phase: Running, containerStatuses: [{name: app, ready: false, state: {running: {startedAt: "2026-03-01T10:00:00Z"}}}]}`
	checkAll(t, []example{
		{"crash", Crash, "Deployment shop/web: container app stops with exit code 1; its last line: panic: no database", web(crash("exitCode: 1, reason: Error")), nil, "panic: no database"},
		{"crash without log", Crash, "Deployment shop/web: container app stops with exit code 127 (its command is not there)", web(crash("exitCode: 127, reason: Error")), nil, ""},
		{"crash that has just ended", Crash, "Deployment shop/web: container app stops with exit code 1", web(`status: {phase: Running, containerStatuses: [{name: app, state: {terminated: {exitCode: 1, reason: Error}}}]}`), nil, ""},
		{"crash that has just begun again", Crash, "Deployment shop/web: container app stops with exit code 1", web(`status: {phase: Running, containerStatuses: [{name: app, ready: false, state: {running: {}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`), nil, ""},
		{"ends although it is meant to stay", Crash, "Deployment shop/web: container app stops with exit code 0, although it is meant to stay", web(crash("exitCode: 0, reason: Completed")), nil, ""},
		{"memory", OutOfMemory, "Deployment shop/web: container app was killed: it needs more memory than its limit of 64Mi", web(crash("exitCode: 137, reason: OOMKilled")), nil, "allocating"},
		{"liveness", LivenessProbe, "Deployment shop/web: container app is killed again and again, since its liveness probe fails (HTTP 500)", web(crash("exitCode: 137, reason: Error")), []string{onPod + "Killing: Container app failed liveness probe, will be restarted", onPod + "Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500"}, ""},
		{"readiness", ReadinessProbe, "Deployment shop/web: container app runs, but its readiness probe fails (HTTP 503)", web(running), []string{onPod + "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503"}, ""},
		{"readiness, no port", ReadinessProbe, "Deployment shop/web: container app runs, but its readiness probe fails (nothing listens on its port)", web(running), []string{onPod + `Unhealthy: Readiness probe failed: Get "http://10.1.2.3:8080/": dial tcp 10.1.2.3:8080: connect: connection refused`}, ""},
		{"readiness by a command", ReadinessProbe, "Deployment shop/web: container app runs, but its readiness probe fails (cat: /ready: No such file on …)", web(running), []string{onPod + "Unhealthy: Readiness probe failed: cat: /ready: No such file on 10.1.2.3"}, ""},
		{"startup", StartupProbe, "Deployment shop/web: container app runs, but its startup probe fails (no answer in time)", web(running), []string{onPod + "Unhealthy: Startup probe failed: context deadline exceeded", onPod + "Unhealthy: Readiness probe failed: x"}, ""},
		{"command", ContainerStart, `Deployment shop/web: container app can not start: exec: "serve": executable file not found in $PATH`, web(waiting("RunContainerError", `failed to create containerd task: failed to create shim task: OCI runtime create failed: exec: "serve": executable file not found in $PATH`)), nil, ""},
		{"ConfigMap", ConfigMapMissing, "Deployment shop/web: container app needs ConfigMap shop/settings, which is not there", web(waiting("CreateContainerConfigError", `configmap "settings" not found`)), nil, ""},
		{"Secret", SecretMissing, "Deployment shop/web: container app needs Secret shop/password, which is not there", web(waiting("CreateContainerConfigError", `secret "password" not found`)), nil, ""},
		{"key", KeyMissing, "Deployment shop/web: container app needs the key url of ConfigMap shop/settings, which is not there", web(waiting("CreateContainerConfigError", `couldn't find key url in ConfigMap shop/settings`)), nil, ""},
		{"root", ContainerConfig, "Deployment shop/web: container app can not be configured: container has runAsNonRoot and image will run as root", web(waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")), nil, ""},
		{"init container", Crash, "Deployment shop/web: init container migrate stops with exit code 3", web(`status: {phase: Pending, initContainerStatuses: [{name: migrate, state: {terminated: {exitCode: 3, reason: Error}}}], containerStatuses: [{name: app, state: {waiting: {reason: PodInitializing}}}]}`), nil, ""},
		{"mount of a Secret", SecretMissing, "Deployment shop/web: a pod of it needs Secret shop/tls, which is not there", web(`status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`), []string{onPod + `FailedMount: MountVolume.SetUp failed for volume "tls" : secret "tls" not found`}, ""},
		{"mount of a key", KeyMissing, "Deployment shop/web: a pod of it needs the key ca.crt of what it names, which is not there", web(`status: {phase: Pending}`), []string{onPod + `FailedMount: MountVolume.SetUp failed for volume "tls" : references non-existent secret key: ca.crt`}, ""},
		{"attached elsewhere", VolumeMount, "Deployment shop/web: a volume of it is still attached to another node", web(`status: {phase: Pending}`), []string{onPod + `FailedAttachVolume: Multi-Attach error for volume "pvc-1" Volume is already used`}, ""},
		{"network", PodNetwork, "Deployment shop/web: the network of a pod of it can not be set up", web(`status: {phase: Pending}`), []string{onPod + `FailedCreatePodSandBox: Failed to create pod sandbox: plugin type="x" failed (add): no IP`}, ""},
		{"evicted", Evicted, "Deployment shop/web: its node evicted a pod of it: The node was low on resource: memory.", web(`status: {phase: Failed, reason: Evicted, message: "The node was low on resource: memory."}`), nil, ""},
		{"node lost", NodeLost, "Deployment shop/web: the node of a pod of it does not report", web(`status: {phase: Running, conditions: [{type: Ready, status: "Unknown", reason: NodeStatusUnknown}]}`), nil, ""},
		{"a pod of a StatefulSet", Crash, "StatefulSet shop/db: container app stops with exit code 1", []string{
			object("StatefulSet", "apps/v1", "db", "", "status: {}"), object("Pod", "v1", "db-0", "db", crash("exitCode: 1")), object("Pod", "v1", "db-1", "db", crash("exitCode: 1")),
		}, nil, ""},
		{"a pod alone, whose set is not known", Crash, "X shop/web-6d4cf56db6: container app stops with exit code 1", web(crash("exitCode: 1"))[2:], nil, ""},
	})
}

func TestScheduling(t *testing.T) {
	pending := func(message string) string {
		return fmt.Sprintf(`spec: {volumes: [{persistentVolumeClaim: {claimName: data}}]}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: %q}]}`, message)
	}
	const no = "Deployment shop/web: no node can take a pod of it: "
	withClaim := append(web(pending("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.")), object("PersistentVolumeClaim", "v1", "data", "", "spec: {storageClassName: fast}, status: {phase: Pending}"))
	checkAll(t, []example{
		{"resources", Unschedulable, no + "not enough cpu; not enough memory", web(pending("0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.")), nil, ""},
		{"a device", Unschedulable, no + "not enough example.com/gpu", web(pending("0/3 nodes are available: 3 Insufficient example.com/gpu.")), nil, ""},
		{"taint", Unschedulable, no + "the taint dedicated=db is not tolerated", web(pending("0/3 nodes are available: 2 node(s) had untolerated taint {dedicated: db}.")), nil, ""},
		{"taint without a value", Unschedulable, no + "its node selector or affinity matches no other node; the taint node.kubernetes.io/not-ready is not tolerated", web(pending("0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 2 node(s) didn't match Pod's node affinity/selector.")), nil, ""},
		{"affinity", Unschedulable, no + "its pod affinity is not met; its pod anti-affinity forbids it", web(pending("0/3 nodes are available: 1 node(s) didn't match pod affinity rules, 2 node(s) didn't match pod anti-affinity rules.")), nil, ""},
		{"spread", Unschedulable, no + "its topology spread forbids it", web(pending("0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints.")), nil, ""},
		{"no nodes", Unschedulable, no + "the cluster has no nodes", web(pending("no nodes available to schedule pods")), nil, ""},
		{"in unknown words", Unschedulable, "Deployment shop/web: no node can take a pod of it", web(pending("0/3 nodes are available: 3 node(s) were odd.")), nil, ""},
		{"no such claim", ClaimMissing, "Deployment shop/web: PersistentVolumeClaim shop/data is not there", web(pending(`0/3 nodes are available: persistentvolumeclaim "data" not found.`)), nil, ""},
		{"claim without its class", ClaimNoClass, "PersistentVolumeClaim shop/data: StorageClass fast is not there", withClaim, []string{`PersistentVolumeClaim/data ProvisioningFailed: storageclass.storage.k8s.io "fast" not found`}, ""},
		{"claim that is not known", Unschedulable, "Deployment shop/web: it waits for a PersistentVolumeClaim that is not bound", withClaim[:3], nil, ""},
		{"gates", SchedulingGated, "Deployment shop/web: a pod of it waits for its scheduling gates", web(`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}`), nil, ""},
	})
}

func TestClaims(t *testing.T) {
	claim := []string{object("PersistentVolumeClaim", "v1", "data", "", "spec: {storageClassName: fast, resources: {requests: {storage: 10Gi}}}, status: {phase: Pending}")}
	const on, it = "PersistentVolumeClaim/data ", "PersistentVolumeClaim shop/data: "
	checkAll(t, []example{
		{"no class", ClaimNoClass, it + "StorageClass fast is not there", claim, []string{on + `ProvisioningFailed: storageclass.storage.k8s.io "fast" not found`}, ""},
		{"no class set", ClaimNoVolume, it + "it names no storage class, there is no default one, and no volume fits it", claim, []string{on + "FailedBinding: no persistent volumes available for this claim and no storage class is set"}, ""},
		{"first consumer", ClaimWaitsForPod, it + "it waits for the first pod that uses it", claim, []string{on + "WaitForFirstConsumer: waiting for first consumer to be created before binding"}, ""},
		{"no room", ClaimNoCapacity, it + "the storage has no room for a volume of 10Gi", claim, []string{on + `ProvisioningFailed: failed to provision volume with StorageClass "fast": rpc error: code = ResourceExhausted desc = no space`}, ""},
		{"refused", ClaimProvisioning, it + `its volume can not be made: failed to provision volume: not authorized at …`, claim, []string{on + "ExternalProvisioning: waiting", on + `ProvisioningFailed: failed to provision volume: not authorized at 10.1.2.3:443`}, ""},
		{"provisioner away", ClaimProvisioning, it + "it waits for the provisioner csi.example.com", claim, []string{on + `ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'csi.example.com' or manually`}, ""},
		{"lost", ClaimLost, it + "its volume is gone", []string{object("PersistentVolumeClaim", "v1", "data", "", "status: {phase: Lost}")}, nil, ""},
		{"silent", ClaimProvisioning, it + "it is not bound to a volume yet", claim, nil, ""},
		{"bound", "", "", []string{object("PersistentVolumeClaim", "v1", "data", "", "status: {phase: Bound}")}, nil, ""},
	})
}

func TestWorkloads(t *testing.T) {
	set := func(message string) []string {
		return []string{
			object("Deployment", "apps/v1", "web", "", "status: {}"),
			object("ReplicaSet", "apps/v1", "web-6d4cf56db6", "web", fmt.Sprintf(`status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: %q}]}`, message)),
		}
	}
	const it = "Deployment shop/web: "
	checkAll(t, []example{
		{"quota", QuotaExceeded, it + "ResourceQuota compute has not enough requests.cpu left", set(`pods "web-6d4cf56db6-x8x2p" is forbidden: exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=9, limited: requests.cpu=10`), nil, ""},
		{"quota that demands requests", QuotaExceeded, it + "ResourceQuota compute demands that limits.cpu for: app are set", set(`pods "web-x8x2p" is forbidden: failed quota: compute: must specify limits.cpu for: app`), nil, ""},
		{"limit range", LimitRange, it + "a LimitRange forbids it: maximum cpu usage per Container is 1, and 2 is asked for", set(`pods "web-x8x2p" is forbidden: maximum cpu usage per Container is 1, but limit is 2`), nil, ""},
		{"service account", ServiceAccountMissing, it + "ServiceAccount robot is not there", set(`pods "web-x8x2p" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found`), nil, ""},
		{"pod security", PodSecurity, it + `the namespace's pod security level restricted:latest forbids it: allowPrivilegeEscalation != false (container "app")`, set(`pods "web-x8x2p" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "app")`), nil, ""},
		{"webhook", AdmissionRefused, it + "admission webhook policy.example.com refuses it: images must be signed", set(`admission webhook "policy.example.com" denied the request: images must be signed`), nil, ""},
		{"policy", AdmissionRefused, it + "ValidatingAdmissionPolicy replicas refuses it: at most some replicas", set(`pods "web" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'all' denied request: at most 5 replicas`), nil, ""},
		{"webhook down", WebhookDown, it + "admission webhook policy.example.com does not answer", set(`Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: Post "https://policy.shop.svc:443/x": dial tcp 10.1.2.3:443: connect: connection refused`), nil, ""},
		{"priority class", PriorityClassMissing, it + "PriorityClass high is not there", set(`pods "web" is forbidden: no PriorityClass with name high was found`), nil, ""},
		{"told by an event", QuotaExceeded, "DaemonSet shop/agent: ResourceQuota pods has not enough pods left", []string{object("DaemonSet", "apps/v1", "agent", "", "status: {}")}, []string{`DaemonSet/agent FailedCreate: Error creating: pods "agent-x8x2p" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=2, limited: pods=2`}, ""},
		{"claims of a StatefulSet", QuotaExceeded, "StatefulSet shop/db: ResourceQuota storage has not enough requests.storage left", []string{object("StatefulSet", "apps/v1", "db", "", "status: {}")}, []string{`StatefulSet/db FailedCreate: create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: persistentvolumeclaims "data-db-0" is forbidden: exceeded quota: storage, requested: requests.storage=1Gi`}, ""},
		{"rollout deadline", RolloutDeadline, it + "its rollout did not get further within its deadline", []string{object("Deployment", "apps/v1", "web", "", `status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`)}, nil, ""},
		{"Job failed", Crash, "Job shop/migrate: container app stops with exit code 2; its last line: no table", []string{
			object("Job", "batch/v1", "migrate", "", `status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`),
			object("Pod", "v1", "migrate-x8x2p", "migrate", `status: {phase: Failed, containerStatuses: [{name: app, state: {terminated: {exitCode: 2, reason: Error}}}]}`),
		}, nil, "no table"},
		{"Job failed, its pods are gone", JobFailed, "Job shop/migrate: its pods failed more often than its backoff limit allows", []string{object("Job", "batch/v1", "migrate", "", `status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`)}, nil, ""},
		{"Job past its deadline", JobDeadline, "Job shop/migrate: it ran longer than its deadline allows", []string{object("Job", "batch/v1", "migrate", "", `status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded}]}`), object("Pod", "v1", "migrate-x8x2p", "migrate", waiting("ErrImagePull", "example.com/shop:2: not found"))}, nil, ""},
		{"HPA without metrics", NoMetrics, "HorizontalPodAutoscaler shop/web: it has no metrics: the metrics API does not serve them (FailedGetResourceMetric)", []string{object("HorizontalPodAutoscaler", "autoscaling/v2", "web", "", `status: {conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"}]}`)}, nil, ""},
		{"HPA without requests", NoMetrics, "HorizontalPodAutoscaler shop/web: it has no metrics: a container asks for no cpu in container app of Pod web-…", []string{object("HorizontalPodAutoscaler", "autoscaling/v2", "web", "", `status: {conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: "the HPA was unable to compute the replica count: failed to get cpu utilization: missing request for cpu in container app of Pod web-6d4cf56db6-x8x2p"}]}`)}, nil, ""},
		{"HPA without target", NoMetrics, "HorizontalPodAutoscaler shop/web: it can not find what it scales, Deployment webb", []string{object("HorizontalPodAutoscaler", "autoscaling/v2", "web", "", `spec: {scaleTargetRef: {kind: Deployment, name: webb}}, status: {conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale}]}`)}, nil, ""},
		{"load balancer", LoadBalancer, "Service shop/web: its load balancer can not be made: Error syncing load balancer: quota reached", []string{object("Service", "v1", "web", "", `health: "Progressing: no address"`)}, []string{"Service/web SyncLoadBalancerFailed: Error syncing load balancer: quota reached"}, ""},
	})
}

func TestCustomResources(t *testing.T) {
	certificate := []string{
		object("Certificate", "cert-manager.io/v1", "tls", "", `status: {conditions: [{type: Ready, status: "False", reason: DoesNotExist, message: "Issuing certificate as Secret does not exist"}, {type: Issuing, status: "True"}]}`),
		object("CertificateRequest", "cert-manager.io/v1", "tls-1", "tls", `status: {conditions: [{type: Ready, status: "False", reason: Pending, message: "Waiting on certificate issuance from order shop/tls-1-2: pending"}]}`),
		object("Order", "acme.cert-manager.io/v1", "tls-1-2", "tls-1", "status: {state: pending}"),
		object("Challenge", "acme.cert-manager.io/v1", "tls-1-2-3", "tls-1-2", `status: {state: pending, reason: "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'"}`),
	}
	checkAll(t, []example{
		{"certificate", CertificateNotIssued, "Certificate shop/tls: the certificate is not issued yet: Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'", certificate, nil, ""},
		{"certificate without more", CertificateNotIssued, "Certificate shop/tls: the certificate is not issued yet: Issuing certificate as Secret does not exist", certificate[:1], nil, ""},
		{"failed order", CertificateNotIssued, "Order shop/o: the certificate is not issued: the order is invalid: no such domain", []string{object("Order", "acme.cert-manager.io/v1", "o", "", "status: {state: invalid, reason: no such domain}")}, nil, ""},
		{"issuer", IssuerNotReady, "Issuer shop/ca: it can not issue certificates: no such secret", []string{object("Issuer", "cert-manager.io/v1", "ca", "", `status: {conditions: [{type: Ready, status: "False", reason: ErrGetKeyPair, message: no such secret}]}`)}, nil, ""},
		{"ACK terminal", CloudTerminal, "Bucket shop/b: AWS refuses it for good: the name is taken", []string{object("Bucket", "s3.services.k8s.aws/v1alpha1", "b", "", `status: {conditions: [{type: ACK.Terminal, status: "True", message: the name is taken}, {type: ACK.ResourceSynced, status: "False"}]}`)}, nil, ""},
		{"ACK recoverable", CloudRecoverable, "Bucket shop/b: AWS refuses it for now: AccessDenied: not allowed, request id …", []string{object("Bucket", "s3.services.k8s.aws/v1alpha1", "b", "", `status: {conditions: [{type: ACK.Recoverable, status: "True", message: "AccessDenied: not allowed, request id: 5f0c-11AB"}]}`)}, nil, ""},
		{"ACK reference", CloudRecoverable, "Bucket shop/b: it waits for an object that it refers to: key shop/k is not ready", []string{object("Bucket", "s3.services.k8s.aws/v1alpha1", "b", "", `status: {conditions: [{type: ACK.ReferencesResolved, status: "False", message: key shop/k is not ready}]}`)}, nil, ""},
		{"Crossplane", CrossplaneSync, "Bucket shop/b: its provider can not bring it about: create failed: denied", []string{
			object("Shop", "example.org/v1", "s", "", `status: {conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False", reason: Creating}]}`),
			object("Bucket", "s3.aws.upbound.io/v1beta1", "b", "s", `status: {conditions: [{type: Synced, status: "False", reason: ReconcileError, message: "create failed: denied"}]}`),
		}, nil, ""},
		{"Crossplane, later", CrossplaneSync, "Bucket shop/b: its provider's last operation failed: quota", []string{object("Bucket", "s3.aws.upbound.io/v1beta1", "b", "", `status: {conditions: [{type: Synced, status: "True"}, {type: LastAsyncOperation, status: "False", reason: AsyncCreateFailure, message: quota}]}`)}, nil, ""},
		{"sealed secret", NotDecrypted, "SealedSecret shop/password: it can not be decrypted: no key could decrypt secret (password)", []string{object("SealedSecret", "bitnami.com/v1alpha1", "password", "", `status: {conditions: [{type: Synced, status: "False", message: no key could decrypt secret (password)}]}`)}, nil, ""},
		{"external secret", SecretNotSynced, "ExternalSecret shop/password: it can not be read from its store: SecretSyncedError", []string{object("ExternalSecret", "external-secrets.io/v1", "password", "", `status: {conditions: [{type: Ready, status: "False", reason: SecretSyncedError}]}`)}, nil, ""},
		{"any other", Unhealthy, "Gadget shop/g: Ready is False: Broken", []string{object("Gadget", "example.com/v1", "g", "", `health: "Degraded: Ready is False: Broken"`)}, nil, ""},
		{"any other that waits", Waiting, "Gadget shop/g: it is not ready yet", []string{object("Gadget", "example.com/v1", "g", "", `health: "Progressing: it is not ready yet"`)}, nil, ""},
	})
}

func TestDeletion(t *testing.T) {
	leaving := func(condition string) []string {
		return []string{`{apiVersion: v1, kind: Namespace, metadata: {name: old, deletionTimestamp: "2026-03-01T10:00:00Z"}, spec: {finalizers: [kubernetes]}, status: {phase: Terminating, conditions: [` + condition + `]}}`}
	}
	checkAll(t, []example{
		{"finalizer", FinalizerStuck, "Gadget shop/g: it is being deleted and waits for its finalizer example.com/hold", []string{`{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop, deletionTimestamp: "2026-03-01T10:00:00Z", finalizers: [example.com/hold]}}`}, nil, ""},
		{"claim in use", FinalizerStuck, "PersistentVolumeClaim shop/data: it is being deleted and waits for the pods that still use it (kubernetes.io/pvc-protection)", []string{`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, deletionTimestamp: "2026-03-01T10:00:00Z", finalizers: [kubernetes.io/pvc-protection]}, status: {phase: Bound}}`}, nil, ""},
		{"namespace with finalizers", NamespaceTerminating, "Namespace old: it is being deleted and waits for the finalizers example.com/hold", leaving(`{type: NamespaceFinalizersRemaining, status: "True", message: "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances"}`), nil, ""},
		{"namespace with objects", NamespaceTerminating, "Namespace old: it is being deleted and still holds gadgets.example.com, pods.", leaving(`{type: NamespaceContentRemaining, status: "True", message: "Some resources are remaining: pods. has 2 resource instances, gadgets.example.com has 2 resource instances"}`), nil, ""},
		{"namespace behind an API", NamespaceTerminating, "Namespace old: it is being deleted, but an API of the cluster does not answer, so that nobody knows what is in it", leaving(`{type: NamespaceDeletionDiscoveryFailure, status: "True", message: "Discovery failed for some groups"}`), nil, ""},
		{"namespace", NamespaceTerminating, "Namespace old: it is being deleted", leaving(""), nil, ""},
	})
}
