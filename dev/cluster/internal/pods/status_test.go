package pods

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// t0 is when the pods of these tests are admitted.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newPod(policy corev1.RestartPolicy, image, fail string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Spec: corev1.PodSpec{
			RestartPolicy: policy,
			Containers:    []corev1.Container{{Name: "main", Image: image}},
		},
	}
	if fail != "" {
		p.Annotations = map[string]string{FailAnnotation: fail}
	}
	p.Status = Admit(p, "10.244.0.1", "198.51.100.1", t0)
	return p
}

// brief is the part of a status that a reader of these tables wants to see.
type brief struct {
	Phase    corev1.PodPhase
	State    string
	Restarts int32
	Ready    bool
	Exit     int32
}

func briefOf(p *corev1.Pod) brief {
	st := p.Status.ContainerStatuses[0]
	b := brief{Phase: p.Status.Phase, Restarts: st.RestartCount, State: "running"}
	if st.State.Waiting != nil {
		b.State = st.State.Waiting.Reason
	}
	if st.State.Terminated != nil {
		b.State, b.Exit = st.State.Terminated.Reason, st.State.Terminated.ExitCode
	}
	if last := st.LastTerminationState.Terminated; last != nil {
		b.Exit = last.ExitCode
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			b.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return b
}

func TestStep(t *testing.T) {
	const good = "app:1"
	always, never, onFailure := corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want []brief // after each step, 10 minutes apart
	}{
		{"runs", newPod(always, good, ""), []brief{
			{corev1.PodRunning, "running", 0, true, 0}, {corev1.PodRunning, "running", 0, true, 0}}},
		{"completes", newPod(never, good, ""), []brief{
			{corev1.PodRunning, "running", 0, true, 0}, {corev1.PodSucceeded, "Completed", 0, false, 0}}},
		{"job fails", newPod(never, good, "JobFailed"), []brief{
			{corev1.PodRunning, "running", 0, false, 0}, {corev1.PodFailed, "Error", 0, false, 1}}},
		{"job is tried again", newPod(onFailure, good, "JobFailed"), []brief{
			{corev1.PodRunning, "running", 0, false, 0}, {corev1.PodRunning, "running", 1, false, 1},
			{corev1.PodRunning, "CrashLoopBackOff", 1, false, 1}, {corev1.PodRunning, "running", 2, false, 1}}},
		{"job failure is nothing to a server", newPod(always, good, "JobFailed"), []brief{
			{corev1.PodRunning, "running", 0, true, 0}}},
		{"pull", newPod(always, "app:fail-image-pull", ""), []brief{
			{corev1.PodPending, "ErrImagePull", 0, false, 0}, {corev1.PodPending, "ImagePullBackOff", 0, false, 0},
			{corev1.PodPending, "ErrImagePull", 0, false, 0}}},
		{"tag with a digest", newPod(always, "app:fail-ready@sha256:00ff", ""), []brief{
			{corev1.PodRunning, "running", 0, false, 0}, {corev1.PodRunning, "running", 0, false, 0}}},
		{"oom", newPod(always, good, "OOMKilled"), []brief{
			{corev1.PodRunning, "running", 0, false, 0}, {corev1.PodRunning, "running", 1, false, 137},
			{corev1.PodRunning, "CrashLoopBackOff", 1, false, 137}}},
		{"unknown word", newPod(always, good, "Nonsense"), []brief{{corev1.PodRunning, "running", 0, true, 0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []brief
			for i := range tc.want {
				tc.pod.Status = Step(tc.pod, t0.Add(time.Duration(i+1)*10*time.Minute))
				got = append(got, briefOf(tc.pod))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBackOffIsKept: a container in back-off is not started because another one is due.
func TestBackOffIsKept(t *testing.T) {
	p := newPod(corev1.RestartPolicyAlways, "app:fail-crash", "")
	for range 3 {
		p.Status = Step(p, t0)
	}
	if b := briefOf(p); b.State != "CrashLoopBackOff" {
		t.Fatalf("state %+v", b)
	}
	if early := Step(p, t0.Add(5*time.Second)); early.ContainerStatuses[0].State.Waiting == nil {
		t.Error("started before its back-off was over")
	}
	if due := Step(p, t0.Add(10*time.Second)); due.ContainerStatuses[0].State.Running == nil {
		t.Error("did not start after its back-off")
	}
}

func TestBackOffGrows(t *testing.T) {
	for restarts, want := range map[int32]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second, 6: 5 * time.Minute, 60: 5 * time.Minute} {
		if got := backOff(restarts); got != want {
			t.Errorf("after %d restarts %s, want %s", restarts, got, want)
		}
	}
}

func TestReadinessGate(t *testing.T) {
	p := newPod(corev1.RestartPolicyAlways, "app:1", "")
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}
	p.Status = Step(p, t0)
	if briefOf(p).Ready {
		t.Error("ready with a closed gate")
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/open", Status: corev1.ConditionTrue})
	p.Status = Step(p, t0)
	if !briefOf(p).Ready {
		t.Error("not ready with an open gate")
	}
}

func TestFailingInitContainerHoldsThePod(t *testing.T) {
	p := newPod(corev1.RestartPolicyAlways, "app:1", "")
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "app:fail-image-pull"}, {Name: "second", Image: "app:1"}}
	p.Status = Admit(p, "10.244.0.1", "198.51.100.1", t0)
	p.Status = Step(p, t0)
	if got := p.Status.InitContainerStatuses[0].State.Waiting; got == nil || got.Reason != "ErrImagePull" {
		t.Errorf("init container: %+v", p.Status.InitContainerStatuses[0].State)
	}
	if got := briefOf(p); got.State != "PodInitializing" || got.Phase != corev1.PodPending {
		t.Errorf("pod %+v", got)
	}
}

func TestStopEndsContainers(t *testing.T) {
	p := newPod(corev1.RestartPolicyNever, "app:1", "")
	p.Status = Step(p, t0)
	p.Status = Stop(p, t0.Add(time.Second))
	if got := briefOf(p); got.Phase != corev1.PodFailed || got.Exit != 137 {
		t.Errorf("pod %+v", got)
	}
}

func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want [][]string // reasons of each step
	}{
		{"runs", newPod(corev1.RestartPolicyAlways, "app:1", ""), [][]string{{"Pulling", "Pulled", "Created", "Started"}, nil}},
		{"pull", newPod(corev1.RestartPolicyAlways, "app:fail-image-pull", ""), [][]string{{"Pulling", "Failed", "Failed"}, {"BackOff", "Failed"}}},
		{"crash", newPod(corev1.RestartPolicyAlways, "app:fail-crash", ""), [][]string{
			{"Pulling", "Pulled", "Created", "Started"}, {"Pulled", "Created", "Started"}, {"BackOff"}}},
		{"unready", newPod(corev1.RestartPolicyAlways, "app:fail-ready", ""), [][]string{{"Pulling", "Pulled", "Created", "Started", "Unhealthy"}, nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i, want := range tc.want {
				old := tc.pod.DeepCopy()
				tc.pod.Status = Step(tc.pod, t0.Add(time.Duration(i)*time.Second))
				var got []string
				for _, e := range Events(old, tc.pod) {
					got = append(got, e.Reason)
				}
				if !slices.Equal(got, want) {
					t.Errorf("step %d: events %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

func TestLines(t *testing.T) {
	c := &corev1.Container{Name: "main", Image: "app:1"}
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "OOMKilled", StartedAt: metav1.NewTime(t0), FinishedAt: metav1.NewTime(t0.Add(11 * time.Second)),
	}}
	lines := Lines(c, state, 2, t0.Add(time.Hour))
	if n := len(lines); n != 5 || lines[n-1].Text != "fatal: OOMKilled, exiting with code 137" || !lines[n-1].Time.Equal(t0.Add(11*time.Second)) {
		t.Errorf("lines %+v", lines)
	}
}
