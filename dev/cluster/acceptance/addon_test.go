package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestLoadBalancerGetsAnAddress(t *testing.T) {
	ns := shared.namespace(t)
	api := shared.client.CoreV1().Services(ns)
	service := func(name string, annotations map[string]string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	for name, annotations := range map[string]map[string]string{
		"one": nil, "two": nil, "none": {"dev.lockstep/address-after": "never"},
	} {
		if _, err := api.Create(t.Context(), service(name, annotations), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	addresses := map[string]string{}
	eventually(t, 10*time.Second, func(ctx context.Context) error {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, s := range list.Items {
			for _, in := range s.Status.LoadBalancer.Ingress {
				addresses[s.Name] = in.IP
			}
		}
		if addresses["one"] == "" || addresses["two"] == "" {
			return fmt.Errorf("addresses %v", addresses)
		}
		return nil
	})
	if addresses["one"] == addresses["two"] {
		t.Errorf("two Services have the address %s", addresses["one"])
	}
	if addresses["none"] != "" {
		t.Errorf("address %s though it was to have none", addresses["none"])
	}
}

func TestIngressGetsAnAddress(t *testing.T) {
	ns := shared.namespace(t)
	api := shared.client.NetworkingV1().Ingresses(ns)
	ingress := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}},
	}
	if _, err := api.Create(t.Context(), ingress, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func(ctx context.Context) error {
		i, err := api.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && len(i.Status.LoadBalancer.Ingress) == 0 {
			err = fmt.Errorf("no address yet")
		}
		return err
	})
}

func TestClaimIsBoundGrowsAndGoes(t *testing.T) {
	ns := shared.namespace(t)
	api := shared.client.CoreV1().PersistentVolumeClaims(ns)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := api.Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bound := func(size string) func(context.Context) error {
		return func(ctx context.Context) error {
			var err error
			if claim, err = api.Get(ctx, "data", metav1.GetOptions{}); err != nil {
				return err
			}
			have := claim.Status.Capacity[corev1.ResourceStorage]
			if claim.Status.Phase != corev1.ClaimBound || have.String() != size {
				return fmt.Errorf("status %+v", claim.Status)
			}
			return nil
		}
	}
	eventually(t, 20*time.Second, bound("1Gi"))
	p := pod("user", goodImage, nil)
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	createPod(t, ns, p)
	waitForPod(t, ns, "user", podReady)

	grow := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	if _, err := api.Patch(t.Context(), "data", types.MergePatchType, grow, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, bound("2Gi"))

	// The volume goes with the claim, the claim with its last user.
	volume := claim.Spec.VolumeName
	for _, err := range []error{
		api.Delete(t.Context(), "data", metav1.DeleteOptions{}),
		shared.client.CoreV1().Pods(ns).Delete(t.Context(), "user", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 30*time.Second, func(ctx context.Context) error {
		if _, err := shared.client.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("volume %s is still there (%v)", volume, err)
		}
		return nil
	})
}

func TestLogs(t *testing.T) {
	ns := shared.namespace(t)
	createPod(t, ns, pod("good", goodImage, nil))
	createPod(t, ns, pod("crash", "registry.example/app:fail-crash", nil))
	createPod(t, ns, pod("pull", "registry.example/app:fail-image-pull", nil))
	waitForPod(t, ns, "good", podReady)
	waitForPod(t, ns, "crash", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	waitForPod(t, ns, "pull", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting.Reason == "ImagePullBackOff"
	})
	logs := func(name string, opts *corev1.PodLogOptions) (string, error) {
		data, err := shared.client.CoreV1().Pods(ns).GetLogs(name, opts).DoRaw(t.Context())
		return string(data), err
	}
	text, err := logs("good", &corev1.PodLogOptions{})
	if err != nil || !strings.Contains(text, "\nstarted\n") || !strings.Contains(text, "image "+goodImage) {
		t.Errorf("logs %q, %v", text, err)
	}
	one := int64(1)
	if text, err = logs("good", &corev1.PodLogOptions{TailLines: &one, Timestamps: true}); err != nil || strings.Count(text, "\n") != 1 {
		t.Errorf("last line %q, %v", text, err)
	} else if _, err := time.Parse(time.RFC3339Nano, strings.Fields(text)[0]); err != nil {
		t.Errorf("line %q: %v", text, err)
	}
	if text, err = logs("crash", &corev1.PodLogOptions{Previous: true}); err != nil || !strings.Contains(text, "fatal: Error, exiting with code 1") {
		t.Errorf("previous logs %q, %v", text, err)
	}
	if text, err = logs("pull", &corev1.PodLogOptions{}); err == nil || !strings.Contains(text+err.Error(), "is waiting to start: trying and failing to pull image") {
		t.Errorf("logs of a container without image: %q, %v", text, err)
	}
}

func TestLogsFollow(t *testing.T) {
	ns := shared.namespace(t)
	createPod(t, ns, pod("good", goodImage, nil))
	waitForPod(t, ns, "good", podReady)
	stream, err := shared.client.CoreV1().Pods(ns).GetLogs("good", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	var text strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(text.String(), "still running, line 1") {
		n, err := stream.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			t.Fatalf("after %q: %v", text.String(), err)
		}
	}
	if err := shared.client.CoreV1().Pods(ns).Delete(t.Context(), "good", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; _, err = stream.Read(buf) {
	}
}
