package health

import (
	"strconv"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// pod is well when it is ready, or, where it is meant to end, when it has ended well. Only a pod that is meant to stay is
// failed by a container that can not start: one that is meant to end, such as a hook, may still run once the reason is
// gone, and must not be given up before.
func pod(f field.Map) v1alpha1.HealthStatus {
	if f.Stale() {
		return unobserved()
	}
	stays := staysUp(f)
	if stays {
		if sentence := cannotStart(f); sentence != "" {
			return degraded(sentence)
		}
	}
	switch phase := f.Text("status", "phase"); phase {
	case "Pending", "":
		return progressing(pendingSentence(f))
	case "Succeeded":
		return healthy("it is complete")
	case "Failed":
		return degraded(podFailure(f))
	case "Running":
		if !stays {
			return progressing("it is running")
		}
		return runningPod(f)
	default:
		return unknown("its node does not report")
	}
}

// staysUp tells whether the pod is meant to run without end. The annotation says so for a pod that is not restarted; a hook
// always ends.
func staysUp(f field.Map) bool {
	annotations := f.At("metadata", "annotations")
	switch f.Text("spec", "restartPolicy") {
	case "Always", "":
		return true
	}
	hook := annotations.Text("argocd.argoproj.io/hook") != "" || annotations.Text("helm.sh/hook") != ""
	return !hook && annotations.Text("argocd.argoproj.io/ignore-restart-policy") == "true"
}

// runningPod is the health of a pod that is meant to stay up and has started.
func runningPod(f field.Map) v1alpha1.HealthStatus {
	if f.Holds("Ready") {
		return healthy("")
	}
	for _, container := range f.List("status", "containerStatuses") {
		if container.At("lastState", "terminated") != nil {
			return degraded(stopped(container))
		}
	}
	return progressing("it is not ready yet")
}

// cannotStart finds the first container that can not start, and says why.
func cannotStart(f field.Map) string {
	for _, container := range containers(f) {
		name, reason := container.Text("name"), container.Text("state", "waiting", "reason")
		switch {
		case reason == "CrashLoopBackOff":
			return stopped(container)
		// The kubelet changes between these while it tries again.
		case strings.HasPrefix(reason, "ErrImage"), reason == "ImagePullBackOff", reason == "InvalidImageName", reason == "RegistryUnavailable":
			return "container " + name + " can not pull image " + container.Text("image")
		case strings.HasPrefix(reason, "Err"), strings.HasSuffix(reason, "Error"), strings.HasSuffix(reason, "BackOff"):
			return "container " + name + " can not start (" + reason + ")"
		}
	}
	return ""
}

// stopped says how a container ended last. It says the same while the container waits, has ended again, or tries again.
func stopped(container field.Map) string {
	name := container.Text("name")
	for _, state := range []string{"state", "lastState"} {
		end := container.At(state, "terminated")
		if end == nil {
			continue
		}
		if end.Text("reason") == "OOMKilled" {
			return "container " + name + " was killed: it needs more memory than its limit"
		}
		return "container " + name + " stopped with exit code " + strconv.FormatInt(end.Count("exitCode"), 10)
	}
	return "container " + name + " stops again and again"
}

// podFailure says why a pod that has ended did not succeed.
func podFailure(f field.Map) string {
	for _, container := range containers(f) {
		if end := container.At("state", "terminated"); end != nil && end.Count("exitCode") != 0 {
			return stopped(container)
		}
	}
	return because("it failed", f.At("status"))
}

// pendingSentence says what a pod waits for before it starts.
func pendingSentence(f field.Map) string {
	scheduled := f.Condition("PodScheduled")
	switch {
	case scheduled.Text("status") == "False" && scheduled.Text("reason") == "SchedulingGated":
		return "it waits for its scheduling gates"
	case scheduled.Text("status") == "False":
		return "no node can take it"
	case scheduled == nil:
		return "it is not scheduled yet"
	}
	return "its containers have not started yet"
}

// containers are the states of init containers, then of the others.
func containers(f field.Map) []field.Map {
	return append(f.List("status", "initContainerStatuses"), f.List("status", "containerStatuses")...)
}
