package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cause"
	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/test/env"
)

// broken is something that is not well in the cluster, with the sentence that explains it. NS stands for its namespace.
type broken struct {
	name     string
	reason   cause.Reason
	sentence string
	// objects as YAML; the first is the one that the application manages and that is not well.
	objects []string
}

const pod = `{containers: [{name: app, image: "registry.k8s.io/pause:3.9"}]}`

func deploymentOf(podSpec string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: ` + podSpec + `}}}`
}

func tagged(tag string) string { return strings.Replace(pod, "pause:3.9", "pause:"+tag, 1) }

func jobOf(tag, spec string) string {
	return `{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, spec: {backoffLimit: 0, ` + spec + `template: {spec: {restartPolicy: Never, containers: [{name: app, image: "registry.k8s.io/pause:` + tag + `"}]}}}}`
}

func claimOf(spec string) string {
	return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], ` + spec + `resources: {requests: {storage: 1Gi}}}}`
}

func brokenThings() []broken {
	const web, it = "Deployment NS/web: ", "PersistentVolumeClaim NS/data: "
	return []broken{
		{"image", cause.ImageNotFound, web + "container app can not pull image registry.k8s.io/pause:fail-image-pull: there is no such image", []string{deploymentOf(tagged("fail-image-pull"))}},
		{"crash", cause.Crash, web + "container app stops with exit code 1; its last line: fatal: Error, exiting with code 1", []string{deploymentOf(tagged("fail-crash"))}},
		{"memory", cause.OutOfMemory, web + "container app was killed: it needs more memory than its limit of 64Mi", []string{deploymentOf(strings.Replace(tagged("fail-oom"), "}]}", ", resources: {limits: {memory: 64Mi}}}]}", 1))}},
		{"probe", cause.ReadinessProbe, web + "container app runs, but its readiness probe fails (HTTP 503)", []string{deploymentOf(tagged("fail-ready"))}},
		{"configuration", cause.ConfigMapMissing, web + "container app needs ConfigMap NS/app-config, which is not there", []string{deploymentOf(tagged("fail-config"))}},
		{"resources", cause.Unschedulable, web + "no node can take a pod of it: not enough cpu", []string{deploymentOf(strings.Replace(pod, "}]}", `, resources: {requests: {cpu: "5000"}}}]}`, 1))}},
		{"affinity", cause.Unschedulable, web + "no node can take a pod of it: its node selector or affinity matches no other node", []string{deploymentOf(strings.Replace(pod, "{", "{nodeSelector: {disk: none}, ", 1))}},
		{"gates", cause.SchedulingGated, web + "a pod of it waits for its scheduling gates", []string{deploymentOf(strings.Replace(pod, "{", "{schedulingGates: [{name: example.com/hold}], ", 1))}},
		{"quota", cause.QuotaExceeded, web + "ResourceQuota pods has not enough pods left", []string{deploymentOf(pod), `{apiVersion: v1, kind: ResourceQuota, metadata: {name: pods}, spec: {hard: {pods: "0"}}}`}},
		{"limit range", cause.LimitRange, web + "a LimitRange forbids it: maximum cpu usage per Container is 1, and 2 is asked for", []string{
			deploymentOf(strings.Replace(pod, "}]}", `, resources: {limits: {cpu: "2"}}}]}`, 1)),
			`{apiVersion: v1, kind: LimitRange, metadata: {name: most}, spec: {limits: [{type: Container, max: {cpu: "1"}}]}}`,
		}},
		{"service account", cause.ServiceAccountMissing, web + "ServiceAccount robot is not there", []string{deploymentOf(strings.Replace(pod, "{", "{serviceAccountName: robot, ", 1))}},
		{"priority class", cause.PriorityClassMissing, web + "PriorityClass none is not there", []string{deploymentOf(strings.Replace(pod, "{", "{priorityClassName: none, ", 1))}},
		{"policy", cause.AdmissionRefused, web + "ValidatingAdmissionPolicy no-pods-NS refuses it: no pods here", []string{
			deploymentOf(pod),
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: no-pods-NS}, spec: {matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: [{expression: "false", message: no pods here}]}}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: no-pods-NS}, spec: {policyName: no-pods-NS, validationActions: [Deny]}}`,
		}},
		{"webhook down", cause.WebhookDown, web + "admission webhook policy.example.com does not answer", []string{
			deploymentOf(pod),
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: away-NS}, webhooks: [{name: policy.example.com, admissionReviewVersions: [v1], sideEffects: None, timeoutSeconds: 1, clientConfig: {service: {namespace: NS, name: policy}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}`,
		}},
		{"claim without its class", cause.ClaimNoClass, it + "StorageClass none is not there", []string{claimOf("storageClassName: none, ")}},
		{"claim without a class", cause.ClaimNoVolume, it + "it names no storage class, there is no default one, and no volume fits it", []string{claimOf(`storageClassName: "", `)}},
		{"claim that waits for its pod", cause.ClaimWaitsForPod, it + "it waits for the first pod that uses it", []string{
			claimOf("storageClassName: late-NS, "),
			`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late-NS}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}`,
		}},
		{"claim of a pod", cause.ClaimNoClass, it + "StorageClass none is not there", []string{
			deploymentOf(strings.Replace(pod, "{", "{volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], ", 1)), claimOf("storageClassName: none, "),
		}},
		{"job", cause.Crash, "Job NS/migrate: container app stops with exit code 1; its last line: fatal: Error, exiting with code 1", []string{jobOf("fail-job", "")}},
		{"job past its deadline", cause.JobDeadline, "Job NS/migrate: it ran longer than its deadline allows", []string{jobOf("3.9", "activeDeadlineSeconds: 1, suspend: false, ")}},
		{"autoscaler", cause.NoMetrics, "HorizontalPodAutoscaler NS/web: it can not find what it scales, Deployment none", []string{
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`,
		}},
	}
}

// Causes are produced in the local cluster, by Kubernetes' own controllers (issue 6, "Health and causes").
func TestExplainWhatTheClusterShows(t *testing.T) {
	shared := env.Cluster(t)
	for _, b := range brokenThings() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			here := strings.NewReplacer("NS", env.Namespace(t, shared))
			for _, text := range b.objects[1:] {
				c.apply(t, here.Replace("NS"), here.Replace(text), nil)
			}
			if b.reason == cause.AdmissionRefused || b.reason == cause.WebhookDown {
				c.untilRefused(t, here.Replace("NS"))
			}
			first := c.apply(t, here.Replace("NS"), here.Replace(b.objects[0]), nil)
			c.create(t, "shop", func(app *v1alpha1.Application) {
				healthy(app)
				gvk := first.GroupVersionKind()
				app.Status.Health.Status = v1alpha1.HealthProgressing
				app.Status.Resources = []v1alpha1.ResourceStatus{{
					Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: here.Replace("NS"), Name: first.GetName(),
					Status: v1alpha1.SyncSynced,
				}}
				app.Status.ResourceHealthSource = v1alpha1.ResourceHealthAppTree // as the engine writes it
			})
			c.explained(t, b.reason, here.Replace(b.sentence))
		})
	}
}

// explained waits until the application shop is explained by a sentence.
func (c *cluster) explained(t *testing.T, reason cause.Reason, sentence string) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("the last explanation:\n%s", last)
		}
	}()
	until(t, string(reason)+" "+sentence, func() bool {
		r := c.lockstep("explain", "shop", "-o", "json")
		r.want(t, cli.CodeOK)
		last = r.stdout
		var why struct{ Causes []cause.Cause }
		if err := json.Unmarshal([]byte(r.stdout), &why); err != nil {
			t.Fatal(err)
		}
		return len(why.Causes) == 1 && why.Causes[0].Reason == reason && why.Causes[0].Sentence == sentence
	})
	c.lockstep("explain", "shop").want(t, cli.CodeOK, sentence, "Next: ", "└ ")
}

// apply makes an object in a namespace, where its kind has such, and takes it away with the test.
func (c *cluster) apply(t *testing.T, namespace, text string, status map[string]any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	api, namespaced := c.api(t, u, namespace)
	made, err := api.Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !namespaced {
		t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), u.GetName(), metav1.DeleteOptions{}) })
	}
	if status != nil {
		made.Object["status"] = status
		if _, err := api.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// untilRefused waits until what refuses pods in a namespace has taken effect.
func (c *cluster) untilRefused(t *testing.T, namespace string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: "+pod+"}"), &u.Object); err != nil {
		t.Fatal(err)
	}
	api, _ := c.api(t, u, namespace)
	until(t, "a refusal", func() bool {
		_, err := api.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && !strings.Contains(err.Error(), "serviceaccount")
	})
}

func (c *cluster) api(t *testing.T, u *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, bool) {
	t.Helper()
	config := env.Cluster(t).REST()
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	disc, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	gvk := u.GroupVersionKind()
	m, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disc)).RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return dyn.Resource(m.Resource).Namespace(namespace), true
	}
	return dyn.Resource(m.Resource), false
}

// What is being deleted and does not go is explained by what holds it.
func TestExplainWhatIsHeld(t *testing.T) {
	c := newCluster(t)
	held := c.apply(t, c.namespace, `{apiVersion: v1, kind: ConfigMap, metadata: {name: old, finalizers: [example.com/hold]}}`, nil)
	api, _ := c.api(t, held, c.namespace)
	if err := api.Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patch := []byte(`{"metadata": {"finalizers": null}}`)
		if _, err := api.Patch(context.WithoutCancel(t.Context()), "old", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
	c.create(t, "shop", func(app *v1alpha1.Application) {
		healthy(app)
		app.Status.Health.Status = v1alpha1.HealthProgressing
		app.Status.Resources = []v1alpha1.ResourceStatus{{Version: "v1", Kind: "ConfigMap", Namespace: c.namespace, Name: "old", RequiresPruning: true}}
	})
	c.explained(t, cause.FinalizerStuck, fmt.Sprintf("ConfigMap %s/old: it is being deleted and waits for its finalizer example.com/hold", c.namespace))
}

// What is well has no cause, and what may not be read is told.
func TestExplainNothing(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", healthy)
	r := c.lockstep("explain", "shop")
	r.want(t, cli.CodeOK)
	if want := c.namespace + "/shop is Healthy and Synced.\n"; r.stdout != want || r.stderr != "" {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	c.lockstep("explain", "shop", "-o", "yaml").want(t, cli.CodeOK, "causes: []")
	c.lockstep("explain", "none").want(t, cli.CodeNotFound, "none")
	c.lockstep("explain").want(t, cli.CodeUsage)
}
