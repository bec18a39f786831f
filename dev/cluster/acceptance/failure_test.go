package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFailures: each way to fail looks as it does with a real kubelet or scheduler.
func TestFailures(t *testing.T) {
	ns := shared.namespace(t)
	waiting := func(reason, message string) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			if len(p.Status.ContainerStatuses) == 0 {
				return false
			}
			w := p.Status.ContainerStatuses[0].State.Waiting
			return w != nil && w.Reason == reason && strings.Contains(w.Message, message)
		}
	}
	crashed := func(reason string, code int32) func(*corev1.Pod) bool {
		in := waiting("CrashLoopBackOff", "back-off 10s restarting failed container=main pod=")
		return func(p *corev1.Pod) bool {
			if !in(p) {
				return false
			}
			st := p.Status.ContainerStatuses[0]
			last := st.LastTerminationState.Terminated
			return st.RestartCount == 1 && last != nil && last.Reason == reason && last.ExitCode == code && !podReady(p)
		}
	}
	for _, tc := range []struct {
		name, image, fail string
		want              func(*corev1.Pod) bool
		phase             corev1.PodPhase
		reason, message   string
	}{
		{"pull", goodImage, "ImagePullBackOff", waiting("ImagePullBackOff", "Back-off pulling image"), corev1.PodPending, "Failed", "Error: ErrImagePull"},
		{"pull-tag", "registry.example/app:fail-image-pull", "", waiting("ImagePullBackOff", "not found"), corev1.PodPending, "BackOff", "Back-off pulling image"},
		{"err", goodImage, "ErrImagePull", waiting("ErrImagePull", "not found"), corev1.PodPending, "Failed", "Failed to pull image"},
		{"name", goodImage, "InvalidImageName", waiting("InvalidImageName", "invalid reference format"), corev1.PodPending, "InspectFailed", "invalid reference"},
		{"config", goodImage, "CreateContainerConfigError", waiting("CreateContainerConfigError", "not found"), corev1.PodPending, "Failed", "Error: configmap"},
		{"crash", goodImage, "CrashLoopBackOff", crashed("Error", 1), corev1.PodRunning, "BackOff", "back-off 10s restarting failed container"},
		{"crash-tag", "registry.example/app:fail-crash", "", crashed("Error", 1), corev1.PodRunning, "BackOff", "back-off 10s"},
		{"oom", goodImage, "OOMKilled", crashed("OOMKilled", 137), corev1.PodRunning, "BackOff", "back-off 10s"},
		{"unready", goodImage, "NeverReady", func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning && !podReady(p)
		}, corev1.PodRunning, "Unhealthy", "Readiness probe failed"},
		{"unready-tag", "registry.example/app:fail-ready", "", func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning && !podReady(p)
		}, corev1.PodRunning, "Unhealthy", "Readiness probe failed"},
		{"creating", goodImage, "ContainerCreating", waiting("ContainerCreating", ""), corev1.PodPending, "", ""},
		{"unschedulable", goodImage, "Unschedulable", func(p *corev1.Pod) bool {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, "0/3 nodes are available: 3 Insufficient cpu") {
					return true
				}
			}
			return false
		}, corev1.PodPending, "FailedScheduling", "0/3 nodes are available"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var annotations map[string]string
			if tc.fail != "" {
				annotations = map[string]string{"dev.lockstep/fail": tc.fail}
			}
			createPod(t, ns, pod(tc.name, tc.image, annotations))
			p := waitForPod(t, ns, tc.name, tc.want)
			if p.Status.Phase != tc.phase {
				t.Errorf("phase %s, want %s", p.Status.Phase, tc.phase)
			}
			if tc.reason != "" {
				expectEvent(t, ns, tc.reason, tc.message)
			}
		})
	}
}

// TestCrashLoopGoesOn: after its back-off a crashing container starts again.
func TestCrashLoopGoesOn(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	createPod(t, ns, pod("crash", "registry.example/app:fail-crash", nil))
	waitForPod(t, ns, "crash", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount >= 2
	})
}

func createPod(t *testing.T, ns string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := shared.client.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func waitForPod(t *testing.T, ns, name string, ok func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	eventually(t, 40*time.Second, func(ctx context.Context) error {
		p, err := shared.client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !ok(p) {
			return fmt.Errorf("pod %s: status %+v", name, p.Status)
		}
		found = p
		return nil
	})
	return found
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func expectEvent(t *testing.T, ns, reason, message string) {
	t.Helper()
	eventually(t, 15*time.Second, func(ctx context.Context) error {
		events, err := shared.client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range events.Items {
			if e.Reason == reason && strings.Contains(e.Message, message) {
				return nil
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("no event %s %q among\n%s", reason, message, strings.Join(seen, "\n"))
	})
}
