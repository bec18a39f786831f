package component

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/pods"
)

// TestStagesFollowTheStatus plays pods through KWOK's own engine: at every point one
// stage at most matches, with the delay that the status asks for.
func TestStagesFollowTheStatus(t *testing.T) {
	ref := internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}
	type step struct {
		stage string
		delay time.Duration
	}
	for _, tc := range []struct {
		name        string
		policy      corev1.RestartPolicy
		image       string
		init        string
		annotations map[string]string
		want        []step
	}{
		{name: "server", image: "app:1", want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {}}},
		{name: "late", image: "app:1", annotations: map[string]string{pods.ReadyAfterAnnotation: "7s"},
			want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {"pod-step", 7 * time.Second}, {}}},
		{name: "job", policy: corev1.RestartPolicyNever, image: "app:1", annotations: map[string]string{pods.RunForAnnotation: "1m30s"},
			want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {"pod-step", 90 * time.Second}, {}}},
		{name: "crash", image: "app:fail-crash",
			want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {"pod-step", time.Second}, {"pod-step", time.Second},
				{"pod-step", 10 * time.Second}, {"pod-step", time.Second}, {"pod-step", 20 * time.Second}}},
		{name: "pull", image: "app:1", annotations: map[string]string{pods.FailAnnotation: "ImagePullBackOff"},
			want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {"pod-step", time.Second}, {"pod-step", 15 * time.Second}}},
		{name: "err", image: "app:1", annotations: map[string]string{pods.FailAnnotation: "ErrImagePull"},
			want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {}}},
		{name: "config", image: "app:fail-config", want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {}}},
		{name: "creating", image: "app:1", annotations: map[string]string{pods.FailAnnotation: "ContainerCreating"},
			want: []step{{"pod-admit", 0}, {}}},
		{name: "unready", image: "app:fail-ready", want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {}}},
		{name: "init", image: "app:1", init: "app:1", want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {}}},
		{name: "init pull", image: "app:1", init: "app:fail-image-pull",
			want: []step{{"pod-admit", 0}, {"pod-step", 20 * time.Millisecond}, {"pod-step", time.Second}, {"pod-step", 15 * time.Second}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			engine, err := lifecycle.NewLifecycle(stages()[ref])
			if err != nil {
				t.Fatal(err)
			}
			if tc.policy == "" {
				tc.policy = corev1.RestartPolicyAlways
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Annotations: tc.annotations},
				Spec:       corev1.PodSpec{NodeName: "node-1", RestartPolicy: tc.policy, Containers: []corev1.Container{{Name: "main", Image: tc.image}}},
				Status:     corev1.PodStatus{Phase: corev1.PodPending},
			}
			if tc.init != "" {
				pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: tc.init}}
			}
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			for i, want := range tc.want {
				stage, delay := match(t, engine, pod, now)
				if stage != want.stage || delay != want.delay {
					t.Fatalf("step %d: %s after %s, want %+v; status %+v", i+1, stage, delay, want, pod.Status)
				}
				now = now.Add(delay)
				if stage == "pod-admit" {
					pod.Status = pods.Admit(pod, "10.244.0.1", "198.51.100.1", now)
				} else {
					pod.Status = pods.Step(pod, now)
				}
			}
		})
	}
}

func match(t *testing.T, engine lifecycle.Lifecycle, pod *corev1.Pod, now time.Time) (string, time.Duration) {
	t.Helper()
	event := &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod}
	list, err := engine.ListAllPossible(context.Background(), event)
	if err != nil {
		t.Fatal(err)
	}
	switch len(list) {
	case 0:
		return "", 0
	case 1:
	default:
		t.Fatalf("%d stages match", len(list))
	}
	delay, _, err := list[0].Delay(context.Background(), event, now)
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Name(), delay
}

func TestDyingPods(t *testing.T) {
	engine, err := lifecycle.NewLifecycle(stages()[internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}])
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &now, Annotations: map[string]string{pods.StopAfterAnnotation: "4s"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.0.1"},
	}
	if stage, delay := match(t, engine, pod, now.Time); stage != "pod-delete" || delay != 4*time.Second {
		t.Errorf("%s after %s", stage, delay)
	}
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	if stage, delay := match(t, engine, pod, now.Time); stage != "pod-stop" || delay != 4*time.Second {
		t.Errorf("%s after %s", stage, delay)
	}
	pod.Status.Phase = corev1.PodFailed
	if stage, delay := match(t, engine, pod, now.Time); stage != "pod-delete" || delay != 0 {
		t.Errorf("%s after %s", stage, delay)
	}
}
