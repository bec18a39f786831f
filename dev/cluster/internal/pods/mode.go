// Package pods decides what simulated pods do: which status a kubelet would write
// next, which events it would send, what logs and exec answer. Decisions are pure
// functions of the pod and the time; KWOK (internal/component) watches, waits and
// patches. The package never talks to an API server.
package pods

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotations on a pod (usually on a pod template) that choose what it does.
const (
	// FailAnnotation makes all containers of the pod fail in the way of a Mode.
	FailAnnotation = "dev.lockstep/fail"
	// ReadyAfterAnnotation is the time from running to ready, a Go duration, default 0.
	ReadyAfterAnnotation = "dev.lockstep/ready-after"
	// RunForAnnotation is how long a container that ends runs, a Go duration, default
	// 1s: containers of Jobs and crashing ones.
	RunForAnnotation = "dev.lockstep/run-for"
	// StopAfterAnnotation is how long a deleted pod takes to stop, a Go duration, default 0.
	StopAfterAnnotation = "dev.lockstep/stop-after"
)

// Mode is the way in which a container fails. The empty Mode does not fail.
type Mode string

// The modes, spelled as the reason that a user sees where there is one.
const (
	ImagePullBackOff           Mode = "ImagePullBackOff"
	ErrImagePull               Mode = "ErrImagePull"
	InvalidImageName           Mode = "InvalidImageName"
	CreateContainerConfigError Mode = "CreateContainerConfigError"
	CrashLoopBackOff           Mode = "CrashLoopBackOff"
	OOMKilled                  Mode = "OOMKilled"
	NeverReady                 Mode = "NeverReady"
	JobFailed                  Mode = "JobFailed"
	ContainerCreating          Mode = "ContainerCreating"
	UnschedulableMode          Mode = "Unschedulable"
)

// Modes lists all modes that FailAnnotation may name.
func Modes() []Mode {
	return []Mode{ImagePullBackOff, ErrImagePull, InvalidImageName, CreateContainerConfigError, CrashLoopBackOff,
		OOMKilled, NeverReady, JobFailed, ContainerCreating, UnschedulableMode}
}

// tagMode finds the mode in an image's tag.
var tagMode = regexp.MustCompile(`:(fail-[a-z-]+)(@sha256:[0-9a-f]+)?$`)

func modeOfTag(image string) Mode {
	m := tagMode.FindStringSubmatch(image)
	if m == nil {
		return ""
	}
	switch m[1] {
	case "fail-image-pull":
		return ImagePullBackOff
	case "fail-crash":
		return CrashLoopBackOff
	case "fail-oom":
		return OOMKilled
	case "fail-ready":
		return NeverReady
	case "fail-job":
		return JobFailed
	case "fail-config":
		return CreateContainerConfigError
	}
	return ""
}

// ModeOf is the mode of one container: its image's tag, else the pod's annotation.
// An unknown word in the annotation is no failure.
func ModeOf(pod *corev1.Pod, c *corev1.Container) Mode {
	m := asked(pod, c)
	// A container that never ends cannot fail as a Job does.
	if m == JobFailed && !finite(pod) {
		return ""
	}
	return m
}

func asked(pod *corev1.Pod, c *corev1.Container) Mode {
	if m := modeOfTag(c.Image); m != "" {
		return m
	}
	m := Mode(pod.Annotations[FailAnnotation])
	if !slices.Contains(Modes(), m) {
		return ""
	}
	// The annotation speaks of the pod: its init containers get through, or none of
	// the other modes could ever be seen on a pod that has some.
	if slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name }) {
		return ""
	}
	return m
}

// Unschedulable reports whether the pod asks to stay without a node.
func Unschedulable(pod *corev1.Pod) bool {
	return Mode(pod.Annotations[FailAnnotation]) == UnschedulableMode
}

// finite reports whether the pod's containers end by themselves.
func finite(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

// imageID invents the digest that a container runtime would report.
func imageID(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name + "@sha256:" + digest(image)
}
