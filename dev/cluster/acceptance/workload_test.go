package acceptance

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReadyAndSmall(t *testing.T) {
	t.Logf("ready after %s", shared.took)
	// The target is 10 s on an idle machine; others may be busy beside this test.
	if shared.took > 30*time.Second {
		t.Errorf("ready after %s", shared.took)
	}
	s := shared.status(t)
	t.Logf("memory %d MiB", s.PSSKiB/1024)
	if s.PSSKiB == 0 || s.PSSKiB > 700*1024 {
		t.Errorf("memory %d KiB, want up to 700 MiB", s.PSSKiB)
	}
}

func TestDeploymentBecomesAvailable(t *testing.T) {
	ns := shared.namespace(t)
	api := shared.client.AppsV1().Deployments(ns)
	if _, err := api.Create(t.Context(), deployment("web", 3, podTemplate(goodImage, nil)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func(ctx context.Context) error {
		d, err := api.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.AvailableReplicas != 3 {
			return fmt.Errorf("status %+v", d.Status)
		}
		return nil
	})
	pods, err := shared.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ips := map[string]bool{}
	for _, p := range pods.Items {
		ips[p.Status.PodIP] = true
		if p.Status.Phase != corev1.PodRunning || p.Status.StartTime == nil || p.Status.HostIP == "" {
			t.Errorf("pod %s: status %+v", p.Name, p.Status)
		}
	}
	if len(ips) != 3 {
		t.Errorf("pod addresses %v, want three different ones", ips)
	}
	expectEvent(t, ns, "Started", "Container started")

	// Garbage collection: with the Deployment go its ReplicaSet and its pods.
	if err := api.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func(ctx context.Context) error {
		pods, err := shared.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods left", len(pods.Items))
		}
		return err
	})
}

func TestReadyAfterDelay(t *testing.T) {
	ns := shared.namespace(t)
	p := createPod(t, ns, pod("slow", goodImage, map[string]string{"dev.lockstep/ready-after": "3s"}))
	p = waitForPod(t, ns, p.Name, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	if podReady(p) {
		t.Fatal("ready at once")
	}
	p = waitForPod(t, ns, p.Name, podReady)
	started := p.Status.ContainerStatuses[0].State.Running.StartedAt.Time
	for _, c := range p.Status.Conditions {
		// The times have whole seconds.
		if c.Type == corev1.PodReady && c.LastTransitionTime.Sub(started) < 2*time.Second {
			t.Errorf("ready %s after the start", c.LastTransitionTime.Sub(started))
		}
	}
}

func TestInitContainersAndSidecars(t *testing.T) {
	ns := shared.namespace(t)
	always := corev1.ContainerRestartPolicyAlways
	p := pod("init", goodImage, nil)
	p.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: goodImage},
		{Name: "side", Image: goodImage, RestartPolicy: &always},
	}
	createPod(t, ns, p)
	p = waitForPod(t, ns, "init", podReady)
	if s := p.Status.InitContainerStatuses; s[0].State.Terminated == nil || s[1].State.Running == nil {
		t.Errorf("init containers %+v", s)
	}
}

func TestJob(t *testing.T) {
	ns := shared.namespace(t)
	for name, tc := range map[string]struct {
		template corev1.PodTemplateSpec
		want     batchv1.JobConditionType
	}{
		"completes": {podTemplate(goodImage, nil), batchv1.JobComplete},
		"fails":     {podTemplate(goodImage, map[string]string{"dev.lockstep/fail": "JobFailed"}), batchv1.JobFailed},
		"by-tag":    {podTemplate("registry.example/app:fail-job", nil), batchv1.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			api := shared.client.BatchV1().Jobs(ns)
			if _, err := api.Create(t.Context(), job(name, tc.template, 0), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, 30*time.Second, func(ctx context.Context) error {
				j, err := api.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
					return c.Type == tc.want && c.Status == corev1.ConditionTrue
				}) {
					return fmt.Errorf("status %+v", j.Status)
				}
				return nil
			})
		})
	}
}

func TestRunningJobIsDeleted(t *testing.T) {
	ns := shared.namespace(t)
	api := shared.client.BatchV1().Jobs(ns)
	long := podTemplate(goodImage, map[string]string{"dev.lockstep/run-for": "1h"})
	if _, err := api.Create(t.Context(), job("long", long, 0), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func(ctx context.Context) error {
		j, err := api.Get(ctx, "long", metav1.GetOptions{})
		if err == nil && (j.Status.Ready == nil || *j.Status.Ready != 1) {
			err = fmt.Errorf("status %+v", j.Status)
		}
		return err
	})
	policy := metav1.DeletePropagationForeground
	if err := api.Delete(t.Context(), "long", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func(ctx context.Context) error {
		if _, err := api.Get(ctx, "long", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("job is still there (%v)", err)
		}
		return nil
	})
}

func TestNamespaceDeletion(t *testing.T) {
	ns := shared.namespace(t)
	if _, err := shared.client.AppsV1().Deployments(ns).Create(t.Context(), deployment("web", 2, podTemplate(goodImage, nil)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := shared.client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func(ctx context.Context) error {
		if _, err := shared.client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("namespace is still there (%v)", err)
		}
		return nil
	})
}
