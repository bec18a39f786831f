package cause

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// pod explains a pod: from its containers, then from what comes before they start.
func (t *tree) pod(n *node) (candidate, bool) {
	status := n.fields.At("status")
	switch status.Text("reason") {
	case "Evicted":
		return n.cause(Evicted, fails, "its node evicted a pod of it: "+steady.Message(status.Text("message")), "give it requests that it really needs, or nodes with more room"), true
	case "NodeLost":
		return nodeLost(n), true
	}
	if c, ok := t.containers(n); ok {
		return c, true
	}
	if scheduled := n.fields.Condition("PodScheduled"); scheduled.Text("status") == "False" {
		if scheduled.Text("reason") == "SchedulingGated" {
			return n.cause(SchedulingGated, waits, "a pod of it waits for its scheduling gates", "the controller that set the gates has to take them away"), true
		}
		return t.unschedulable(n, scheduled.Text("message")), true
	}
	if text := n.event("FailedMount", "FailedAttachVolume", "FailedMapVolume"); text != "" && n.fields.Text("status", "phase") != "Running" {
		return n.mount(text), true
	}
	if text := n.event("FailedCreatePodSandBox", "NetworkNotReady"); text != "" && n.fields.Text("status", "phase") == "Pending" {
		return n.cause(PodNetwork, blocks, "the network of a pod of it can not be set up", "look at the network plugin of the nodes"), true
	}
	ready := n.fields.Condition("Ready")
	if ready.Text("reason") == "NodeStatusUnknown" || n.fields.Text("status", "phase") == "Unknown" {
		return nodeLost(n), true
	}
	for _, gate := range n.fields.List("spec", "readinessGates") {
		kind := gate.Text("conditionType")
		if n.fields.Text("status", "phase") == "Running" && !n.fields.Holds(kind) {
			return n.cause(ReadinessProbe, waits, "a pod of it waits for its readiness gate "+kind, "look at the controller that opens the gate"), true
		}
	}
	return candidate{}, false
}

func nodeLost(n *node) candidate {
	return n.cause(NodeLost, blocks, "the node of a pod of it does not report", "look at the node; its pods move when it is gone")
}

// containers explains a pod by its containers, the first that says something.
func (t *tree) containers(n *node) (candidate, bool) {
	for _, list := range []struct{ field, word string }{{"initContainerStatuses", "init container "}, {"containerStatuses", "container "}} {
		for _, container := range n.fields.List("status", list.field) {
			if c, ok := t.container(n, list.word+container.Text("name"), container); ok {
				return c, true
			}
		}
	}
	return candidate{}, false
}

func (t *tree) container(n *node, who string, container field.Map) (candidate, bool) {
	switch reason := container.Text("state", "waiting", "reason"); {
	case reason == "ErrImagePull", reason == "ImagePullBackOff", reason == "RegistryUnavailable", reason == "ErrImageNeverPull", reason == "ImageInspectError":
		return pullFailure(n, who, container), true
	case reason == "InvalidImageName":
		return n.cause(ImageName, fails, who+" has an image name that is none: "+container.Text("image"), "correct the image's name"), true
	case reason == "CreateContainerConfigError":
		return n.missing(who, container.Text("state", "waiting", "message")), true
	case reason == "CreateContainerError", reason == "RunContainerError", reason == "StartError":
		return n.cause(ContainerStart, fails, who+" can not start: "+startMessage(container.Text("state", "waiting", "message")), "correct the command, the mounts or the image"), true
	case reason == "CrashLoopBackOff", container.At("state", "terminated") != nil, container.At("lastState", "terminated") != nil && !ready(container):
		return t.stopped(n, who, container)
	}
	if container.At("state", "running") == nil || ready(container) {
		return candidate{}, false
	}
	return n.probe(who)
}

func ready(container field.Map) bool { return container.Flag("ready") }

// startMessage is the end of a container runtime's message: what comes before names the layers it went through.
func startMessage(text string) string {
	for _, sign := range []string{"exec: ", "error mounting ", "error running hook", "stat "} {
		if at := strings.LastIndex(text, sign); at >= 0 {
			return steady.Message(text[at:])
		}
	}
	return steady.Message(text)
}

// stopped explains a container that has ended. One that ended well, as a hook's does, is no cause.
func (t *tree) stopped(n *node, who string, container field.Map) (candidate, bool) {
	end := container.At("state", "terminated")
	if end == nil {
		end = container.At("lastState", "terminated")
	}
	code := end.Count("exitCode")
	switch {
	case end.Text("reason") == "OOMKilled":
		return n.cause(OutOfMemory, fails, who+" was killed: it needs more memory than its limit"+memoryLimit(n, container.Text("name")), "raise the memory limit, or make it use less"), true
	case n.killedByLiveness():
		return n.cause(LivenessProbe, fails, who+" is killed again and again, since its liveness probe fails"+n.probeDetail("Liveness"), "correct the probe, give it more time, or look why the container does not answer"), true
	case code == 0 && container.Text("state", "waiting", "reason") != "CrashLoopBackOff":
		return candidate{}, false
	}
	what := who + " stops with exit code " + strconv.FormatInt(code, 10) + exitWords(code, end.Text("reason"))
	if text := startMessage(end.Text("message")); end.Text("reason") == "ContainerCannotRun" || end.Text("reason") == "StartError" {
		what += ": " + text
	} else if line := t.line(n, container.Text("name")); line != "" {
		what += "; its last line: " + line
	} else if text != "" {
		what += ": " + text
	}
	return n.cause(Crash, fails, what, "read the container's log (kubectl logs --previous)"), true
}

// line is the last line that a container wrote, as far as it is known.
func (t *tree) line(n *node, container string) string {
	if t.lastLine == nil {
		return ""
	}
	return steady.Message(t.lastLine(n.namespace, n.name, container))
}

// exitWords say what an exit code stands for.
func exitWords(code int64, reason string) string {
	switch {
	case reason == "ContainerCannotRun" || reason == "StartError":
		return " (it can not be run)"
	case code == 0:
		return ", although it is meant to stay"
	case code == 126:
		return " (its command may not be executed)"
	case code == 127:
		return " (its command is not there)"
	case code == 137:
		return " (killed)"
	case code == 139:
		return " (invalid memory access)"
	case code == 143:
		return " (asked to stop)"
	}
	return ""
}

func memoryLimit(n *node, container string) string {
	for _, list := range []string{"containers", "initContainers"} {
		for _, spec := range n.fields.List("spec", list) {
			if limit := spec.Text("resources", "limits", "memory"); spec.Text("name") == container && limit != "" {
				return " of " + limit
			}
		}
	}
	return ""
}

func (n *node) killedByLiveness() bool {
	for _, text := range n.messages("Killing") {
		if strings.Contains(text, "failed liveness probe") {
			return true
		}
	}
	return false
}

// probe explains a container that runs and is not ready.
func (n *node) probe(who string) (candidate, bool) {
	for _, kind := range []struct {
		name   string
		reason Reason
	}{{"Startup", StartupProbe}, {"Liveness", LivenessProbe}, {"Readiness", ReadinessProbe}} {
		for _, text := range n.messages("Unhealthy") {
			if strings.HasPrefix(text, kind.name+" probe") {
				return n.cause(kind.reason, blocks, who+" runs, but its "+strings.ToLower(kind.name)+" probe fails"+n.probeDetail(kind.name), "correct the probe, give it more time, or look why the container does not answer"), true
			}
		}
	}
	return candidate{}, false
}

var statusCode = regexp.MustCompile(`statuscode: (\d+)`)

// probeDetail is how a probe fails, without the address of the pod.
func (n *node) probeDetail(kind string) string {
	for _, text := range n.messages("Unhealthy") {
		detail, ok := strings.CutPrefix(text, kind+" probe failed: ")
		if !ok {
			detail, ok = strings.CutPrefix(text, kind+" probe errored: ")
		}
		if !ok {
			continue
		}
		switch code := statusCode.FindStringSubmatch(detail); {
		case code != nil:
			return " (HTTP " + code[1] + ")"
		case strings.Contains(detail, "connection refused"):
			return " (nothing listens on its port)"
		case strings.Contains(detail, "deadline exceeded"), strings.Contains(detail, "timeout"), strings.Contains(detail, "timed out"):
			return " (no answer in time)"
		}
		return " (" + steady.Message(addresses.ReplaceAllString(detail, "…")) + ")"
	}
	return ""
}

// addresses of pods and nodes change while the cause does not.
var addresses = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[[0-9a-fA-F:]+\](?::\d+)?`)

// What the kubelet says when something that a pod names is not there.
var (
	noKey       = regexp.MustCompile(`(?:couldn't find key|references non-existent (?:secret|config) key:?) (\S+?)(?: in (ConfigMap|Secret) (\S+?))?$`)
	noConfigMap = regexp.MustCompile(`configmaps? "([^"]+)" not found`)
	noSecret    = regexp.MustCompile(`secrets? "([^"]+)" not found`)
)

// missing explains a text that names what is not there.
func (n *node) missing(who, text string) candidate {
	if found := noKey.FindStringSubmatch(text); found != nil {
		where := "what it names"
		if found[2] != "" {
			where = found[2] + " " + found[3]
		}
		return n.cause(KeyMissing, fails, who+" needs the key "+found[1]+" of "+where+", which is not there", "add the key, or correct its name")
	}
	if found := noConfigMap.FindStringSubmatch(text); found != nil {
		return n.cause(ConfigMapMissing, fails, who+" needs ConfigMap "+place(n.namespace, found[1])+", which is not there", "create it, or correct its name")
	}
	if found := noSecret.FindStringSubmatch(text); found != nil {
		return n.cause(SecretMissing, fails, who+" needs Secret "+place(n.namespace, found[1])+", which is not there", "create it, or correct its name; look at what should make it")
	}
	return n.cause(ContainerConfig, fails, who+" can not be configured: "+steady.Message(text), "correct the container's specification")
}

// mount explains a volume that can not be mounted.
func (n *node) mount(text string) candidate {
	if noKey.MatchString(text) || noConfigMap.MatchString(text) || noSecret.MatchString(text) {
		return n.missing("a pod of it", text)
	}
	if strings.Contains(text, "Multi-Attach error") {
		return n.cause(VolumeMount, blocks, "a volume of it is still attached to another node", "wait until the old pod is gone, or use the strategy Recreate")
	}
	return n.cause(VolumeMount, blocks, "a volume of it can not be mounted: "+steady.Message(addresses.ReplaceAllString(text, "…")), "look at the volume and its storage")
}
