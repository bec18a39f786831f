package health

import (
	"strconv"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// pod is well when it is ready, or, where it is meant to end, when it has ended well. Only a pod that is meant to stay is
// failed by a container that can not start: one that is meant to end, such as a hook, may still run once the reason is
// gone, and must not be given up before.
func pod(f fields) v1alpha1.HealthStatus {
	if f.stale() {
		return unobserved()
	}
	stays := staysUp(f)
	if stays {
		if sentence := cannotStart(f); sentence != "" {
			return degraded(sentence)
		}
	}
	switch phase := f.text("status", "phase"); phase {
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
func staysUp(f fields) bool {
	annotations := f.at("metadata", "annotations")
	switch f.text("spec", "restartPolicy") {
	case "Always", "":
		return true
	}
	hook := annotations.text("argocd.argoproj.io/hook") != "" || annotations.text("helm.sh/hook") != ""
	return !hook && annotations.text("argocd.argoproj.io/ignore-restart-policy") == "true"
}

// runningPod is the health of a pod that is meant to stay up and has started.
func runningPod(f fields) v1alpha1.HealthStatus {
	if f.holds("Ready") {
		return healthy("")
	}
	for _, container := range f.list("status", "containerStatuses") {
		if container.at("lastState", "terminated") != nil {
			return degraded(stopped(container))
		}
	}
	return progressing("it is not ready yet")
}

// cannotStart finds the first container that can not start, and says why.
func cannotStart(f fields) string {
	for _, container := range containers(f) {
		name, reason := container.text("name"), container.text("state", "waiting", "reason")
		switch {
		case reason == "CrashLoopBackOff":
			return stopped(container)
		// The kubelet changes between these while it tries again.
		case strings.HasPrefix(reason, "ErrImage"), reason == "ImagePullBackOff", reason == "InvalidImageName", reason == "RegistryUnavailable":
			return "container " + name + " can not pull image " + container.text("image")
		case strings.HasPrefix(reason, "Err"), strings.HasSuffix(reason, "Error"), strings.HasSuffix(reason, "BackOff"):
			return "container " + name + " can not start (" + reason + ")"
		}
	}
	return ""
}

// stopped says how a container ended last. It says the same while the container waits, has ended again, or tries again.
func stopped(container fields) string {
	name := container.text("name")
	for _, state := range []string{"state", "lastState"} {
		end := container.at(state, "terminated")
		if end == nil {
			continue
		}
		if end.text("reason") == "OOMKilled" {
			return "container " + name + " was killed: it needs more memory than its limit"
		}
		return "container " + name + " stopped with exit code " + strconv.FormatInt(end.count("exitCode"), 10)
	}
	return "container " + name + " stops again and again"
}

// podFailure says why a pod that has ended did not succeed.
func podFailure(f fields) string {
	for _, container := range containers(f) {
		if end := container.at("state", "terminated"); end != nil && end.count("exitCode") != 0 {
			return stopped(container)
		}
	}
	return because("it failed", f.at("status"))
}

// pendingSentence says what a pod waits for before it starts.
func pendingSentence(f fields) string {
	scheduled := f.condition("PodScheduled")
	switch {
	case scheduled.text("status") == "False" && scheduled.text("reason") == "SchedulingGated":
		return "it waits for its scheduling gates"
	case scheduled.text("status") == "False":
		return "no node can take it"
	case scheduled == nil:
		return "it is not scheduled yet"
	}
	return "its containers have not started yet"
}

// containers are the states of init containers, then of the others.
func containers(f fields) []fields {
	return append(f.list("status", "initContainerStatuses"), f.list("status", "containerStatuses")...)
}
