package pods

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Admit is the status of a pod that a node has just taken: containers are being created.
func Admit(pod *corev1.Pod, podIP, hostIP string, now time.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	start := metav1.NewTime(now)
	s.Phase = corev1.PodPending
	s.StartTime = &start
	s.HostIP, s.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	s.PodIP, s.PodIPs = podIP, []corev1.PodIP{{IP: podIP}}
	s.QOSClass = pod.Status.QOSClass
	s.InitContainerStatuses = nil
	reason := "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	for i := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, created(&pod.Spec.InitContainers[i], reason))
	}
	s.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, created(&pod.Spec.Containers[i], reason))
	}
	setConditions(pod, &s, now)
	return s
}

func created(c *corev1.Container, reason string) corev1.ContainerStatus {
	no := false
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: &no, State: waiting(reason, "")}
}

// Step is the status that follows the current one. A pod with nothing left to do gets
// its status back unchanged.
func Step(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	ready := stepInit(pod, &s, now)
	if ready {
		for i := range s.ContainerStatuses {
			if c := container(pod.Spec.Containers, s.ContainerStatuses[i].Name); c != nil {
				stepContainer(pod, c, &s.ContainerStatuses[i], now)
			}
		}
	}
	s.Phase = phase(pod, &s)
	setConditions(pod, &s, now)
	return s
}

// stepInit runs init containers one after the other and reports whether all are through.
// Those with restartPolicy Always (sidecars) only have to be started.
func stepInit(pod *corev1.Pod, s *corev1.PodStatus, now time.Time) bool {
	for i := range s.InitContainerStatuses {
		st := &s.InitContainerStatuses[i]
		c := container(pod.Spec.InitContainers, st.Name)
		if c == nil || initDone(c, st) {
			continue
		}
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if mode := ModeOf(pod, c); mode != "" {
			stepContainer(pod, c, st, now)
			return false
		}
		if sidecar {
			run(c, st, now)
			st.Ready = true
			continue
		}
		run(c, st, now)
		end(st, now, 0, "Completed")
		st.Ready = true
	}
	return true
}

func initDone(c *corev1.Container, st *corev1.ContainerStatus) bool {
	if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return st.State.Running != nil
	}
	return st.State.Terminated != nil && st.State.Terminated.ExitCode == 0
}

// stepContainer moves one container on, by its mode and its present state.
func stepContainer(pod *corev1.Pod, c *corev1.Container, st *corev1.ContainerStatus, now time.Time) {
	mode := ModeOf(pod, c)
	switch {
	case st.State.Waiting != nil:
		stepWaiting(pod, c, st, mode, now)
	case st.State.Running != nil:
		stepRunning(pod, c, st, mode, now)
	}
}

func stepWaiting(pod *corev1.Pod, c *corev1.Container, st *corev1.ContainerStatus, mode Mode, now time.Time) {
	reason := st.State.Waiting.Reason
	switch mode {
	case ContainerCreating:
		st.State = waiting("ContainerCreating", "")
		return
	case ImagePullBackOff:
		if reason == string(ErrImagePull) {
			st.State = waiting(string(ImagePullBackOff), fmt.Sprintf("Back-off pulling image %q: %s", c.Image, pullError(c.Image)))
			return
		}
		st.State = waiting(string(ErrImagePull), pullError(c.Image))
		return
	case ErrImagePull:
		st.State = waiting(string(ErrImagePull), pullError(c.Image))
		return
	case InvalidImageName:
		st.State = waiting(string(mode), fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: invalid reference format", c.Image, c.Image))
		return
	case CreateContainerConfigError:
		st.State = waiting(string(mode), fmt.Sprintf("configmap %q not found", c.Name+"-config"))
		return
	}
	if reason == string(CrashLoopBackOff) {
		// Another container of the pod may be what woke us: this one has to wait longer.
		if last := st.LastTerminationState.Terminated; last != nil && now.Add(time.Second).Before(last.FinishedAt.Add(backOff(st.RestartCount))) {
			return
		}
		st.RestartCount++
	}
	run(c, st, now)
	st.Ready = mode == "" && (finite(pod) || pod.Annotations[ReadyAfterAnnotation] == "")
}

func stepRunning(pod *corev1.Pod, c *corev1.Container, st *corev1.ContainerStatus, mode Mode, now time.Time) {
	switch {
	case mode == CrashLoopBackOff:
		crash(pod, c, st, now, 1, "Error")
	case mode == OOMKilled:
		crash(pod, c, st, now, 137, "OOMKilled")
	case mode == JobFailed:
		crash(pod, c, st, now, 1, "Error")
	case mode == NeverReady:
	case finite(pod):
		end(st, now, 0, "Completed")
	default:
		st.Ready = true
	}
}

// crash ends a container with an error and does what the restart policy says: the
// first restart is at once, the following ones wait in CrashLoopBackOff.
func crash(pod *corev1.Pod, c *corev1.Container, st *corev1.ContainerStatus, now time.Time, code int32, reason string) {
	end(st, now, code, reason)
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		return
	}
	st.LastTerminationState = st.State
	if st.RestartCount == 0 {
		st.RestartCount = 1
		run(c, st, now)
		st.Ready = false
		return
	}
	st.State = waiting(string(CrashLoopBackOff), fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		backOff(st.RestartCount), c.Name, pod.Name, pod.Namespace, pod.UID))
}

// backOff is a kubelet's delay before restart number restarts+1: 10 s, doubled each
// time, at most 5 minutes.
func backOff(restarts int32) time.Duration {
	d := 10 * time.Second
	for i := int32(1); i < restarts && d < 5*time.Minute; i++ {
		d *= 2
	}
	return min(d, 5*time.Minute)
}

func run(c *corev1.Container, st *corev1.ContainerStatus, now time.Time) {
	yes := true
	st.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	st.Started = &yes
	st.ImageID = imageID(c.Image)
	st.ContainerID = "containerd://" + digest(fmt.Sprint(c.Name, st.RestartCount, now.UnixNano()))
}

func end(st *corev1.ContainerStatus, now time.Time, code int32, reason string) {
	no := false
	started := metav1.NewTime(now)
	if st.State.Running != nil {
		started = st.State.Running.StartedAt
	}
	st.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: metav1.NewTime(now), ContainerID: st.ContainerID,
	}}
	st.Ready, st.Started = false, &no
}

// Stop is the status of a pod that was deleted while it ran: its containers were killed.
func Stop(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	for i := range s.ContainerStatuses {
		if s.ContainerStatuses[i].State.Terminated == nil {
			end(&s.ContainerStatuses[i], now, 137, "Error")
		}
	}
	s.Phase = corev1.PodFailed
	setConditions(pod, &s, now)
	return s
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func pullError(image string) string {
	return fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", image, image, image)
}

func container(list []corev1.Container, name string) *corev1.Container {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
