package pods

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// phase follows from the states of the containers and the restart policy.
func phase(pod *corev1.Pod, s *corev1.PodStatus) corev1.PodPhase {
	var started, ended, failed int
	for _, st := range s.ContainerStatuses {
		if st.State.Running != nil || st.LastTerminationState.Terminated != nil {
			started++
		}
		if st.State.Terminated != nil {
			started++
			ended++
			if st.State.Terminated.ExitCode != 0 {
				failed++
			}
		}
	}
	for _, st := range s.InitContainerStatuses {
		t := st.State.Terminated
		if t != nil && t.ExitCode != 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			return corev1.PodFailed
		}
	}
	switch {
	case ended == len(s.ContainerStatuses) && ended > 0 && failed > 0:
		return corev1.PodFailed
	case ended == len(s.ContainerStatuses) && ended > 0:
		return corev1.PodSucceeded
	case started > 0:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// setConditions derives the conditions that a kubelet owns from the rest of s.
func setConditions(pod *corev1.Pod, s *corev1.PodStatus, now time.Time) {
	over := s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
	incomplete, unready := missing(pod, s)
	set := func(t corev1.PodConditionType, ok bool, reason, message string) {
		setCondition(s, t, ok, reason, message, now)
	}
	set(corev1.PodReadyToStartContainers, !over, "", "")
	set(corev1.PodInitialized, len(incomplete) == 0, "ContainersNotInitialized",
		fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " ")))
	reason, message := "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	switch s.Phase {
	case corev1.PodSucceeded:
		reason, message = "PodCompleted", ""
	case corev1.PodFailed:
		reason, message = "PodFailed", ""
	}
	ready := len(unready) == 0 && !over
	set(corev1.ContainersReady, ready, reason, message)
	if gate := closedGate(pod, s); ready && gate != "" {
		ready, reason = false, "ReadinessGatesNotReady"
		message = fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate)
	}
	set(corev1.PodReady, ready, reason, message)
}

// missing names the init containers that are not through and the containers that are
// not ready.
func missing(pod *corev1.Pod, s *corev1.PodStatus) (incomplete, unready []string) {
	for i := range s.InitContainerStatuses {
		st := &s.InitContainerStatuses[i]
		if c := container(pod.Spec.InitContainers, st.Name); c != nil && !initDone(c, st) {
			incomplete = append(incomplete, st.Name)
		}
	}
	for _, st := range s.ContainerStatuses {
		if !st.Ready {
			unready = append(unready, st.Name)
		}
	}
	return incomplete, unready
}

// closedGate is the first readiness gate whose condition is not true. Whoever owns
// the gate sets it; a kubelet only waits.
func closedGate(pod *corev1.Pod, s *corev1.PodStatus) string {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, c := range s.Conditions {
			open = open || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !open {
			return string(gate.ConditionType)
		}
	}
	return ""
}

func setCondition(s *corev1.PodStatus, t corev1.PodConditionType, ok bool, reason, message string, now time.Time) {
	want := corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}
	if !ok {
		want.Status, want.Reason, want.Message = corev1.ConditionFalse, reason, message
	}
	if ok && s.Phase == corev1.PodSucceeded && t == corev1.PodInitialized {
		want.Reason = "PodCompleted"
	}
	for i, have := range s.Conditions {
		if have.Type != t {
			continue
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		s.Conditions[i] = want
		return
	}
	s.Conditions = append(s.Conditions, want)
}
