package component

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/pods"
)

// KWOK's stages say when something happens to a pod, the functions of package pods
// that their templates call say what. Stages of one kind exclude each other: KWOK
// would choose by chance between several that match.

// nextDelay is a jq program over a pod: the time until its next step, in the form
// that KWOK reads, or nothing when no step is left. It follows package pods: a step
// that it announces without need is harmless, since nothing changes then.
const nextDelay = `
def ann($k): .metadata.annotations[$k] // "";
def tag: (capture(":(?<t>fail-[a-z-]+)(@sha256:[0-9a-f]+)?$") | .t) // "";
def finite: .spec.restartPolicy != "Always";
def reason: .state.waiting.reason // "";
def done($sidecar): if $sidecar then .state.running != null else (.state.terminated.exitCode // 1) == 0 and .state.terminated != null end;
def hold: ["InvalidImageName", "CreateContainerConfigError"];
def wait_for($fail):
  if reason == "CrashLoopBackOff" then [10 * pow(2; .restartCount - 1), 300] | min
  elif reason == "ImagePullBackOff" then 15
  elif reason == "ErrImagePull" then (if $fail == "ErrImagePull" then empty else 1 end)
  elif (reason as $r | hold | index($r)) then empty
  elif $fail == "ContainerCreating" then empty
  else 0.02 end;
def runs($pod; $fail):
  ($pod | ann("dev.lockstep/run-for") | if . == "" then 1 else . end) as $for
  | if $fail == "CrashLoopBackOff" or $fail == "OOMKilled" or $fail == "fail-crash" or $fail == "fail-oom" then $for
    elif $fail == "NeverReady" or $fail == "fail-ready" then empty
    elif ($pod | finite) then $for
    elif .ready then empty
    else ($pod | ann("dev.lockstep/ready-after") | if . == "" then 0 else . end) end;
def gate:
  ([.status.conditions // [] | .[] | {key: .type, value: .status}] | from_entries) as $c
  | if (.spec.readinessGates // [] | length) > 0 and $c.ContainersReady == "True"
      and ($c.Ready == "True") != all(.spec.readinessGates[]; $c[.conditionType] == "True")
    then 0 else empty end;
def candidates:
  . as $pod
  | [.spec.initContainers // [] | .[] | {key: .name, value: .}] | from_entries | . as $inits
  | [$pod.status.initContainerStatuses // [] | .[]
      | $inits[.name] as $c
      | select(done($c.restartPolicy == "Always") | not)
      | . + {tag: ($c.image | tag)}] as $open
  | if ($open | length) > 0 then
      $open[0]
      | if .state.waiting then wait_for(.tag) elif .state.running then runs($pod; .tag) else empty end
    else
      ([$pod.spec.containers[] | {key: .name, value: (.image | tag)}] | from_entries) as $tags
      | ($pod.status.containerStatuses // [] | .[]
        | (if $tags[.name] != "" then $tags[.name] else ($pod | ann("dev.lockstep/fail")) end) as $fail
        | if .state.waiting then wait_for($fail) elif .state.running then runs($pod; $fail) else empty end),
        ($pod | gate)
    end;
[candidates] | (([.[] | numbers] | min) // ([.[] | strings] | first)) | if . == null then empty elif type == "number" then tostring + "s" else . end
`

const (
	alive    = `.metadata.deletionTimestamp == null`
	admitted = `(.status.podIP // "") != ""`
	over     = `(.status.phase == "Succeeded" or .status.phase == "Failed")`
	// dying pods that something waits for (a Job counts its pods) end before they go.
	mustEnd   = `(.metadata.deletionTimestamp != null and ((.metadata.finalizers // []) | length) > 0 and ` + admitted + ` and (` + over + ` | not))`
	stopAfter = `.metadata.annotations["dev.lockstep/stop-after"] // "0s"`
)

// stages is the configuration of KWOK.
func stages() map[internalversion.StageResourceRef][]*internalversion.Stage {
	pod := internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}
	node := internalversion.StageResourceRef{APIGroup: "v1", Kind: "Node"}
	address := `(PodIPWith .spec.nodeName (or .spec.hostNetwork false) "" "" "") (NodeIPWith .spec.nodeName)`
	return map[internalversion.StageResourceRef][]*internalversion.Stage{
		pod: {
			stage("pod-admit", pod, alive+` and (`+admitted+` | not) and (`+over+` | not)`, "",
				status(`{{ PodAdmit . `+address+` }}`)),
			stage("pod-step", pod, alive+` and `+admitted+` and (`+over+` | not) and ([`+nextDelay+`] | length > 0)`, nextDelay,
				status(`{{ PodStep . }}`)),
			stage("pod-stop", pod, mustEnd, stopAfter, status(`{{ PodStop . }}`), internalversion.StageStep{Delete: true}),
			stage("pod-delete", pod, `(.metadata.deletionTimestamp != null) and (`+mustEnd+` | not)`,
				`if `+over+` then "0s" else `+stopAfter+` end`, internalversion.StageStep{Delete: true}),
		},
		node: {
			stage("node-ready", node, `[.status.conditions // [] | .[] | select(.type == "Ready" and .status == "True")] | length == 0`, "",
				status(`{{ NodeStatus . }}`)),
		},
	}
}

func stage(name string, ref internalversion.StageResourceRef, when, delay string, steps ...internalversion.StageStep) *internalversion.Stage {
	s := &internalversion.Stage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: internalversion.StageSpec{
			ResourceRef: ref,
			Weight:      1,
			Selector: &internalversion.StageSelector{MatchExpressions: []internalversion.MatchExpression{{
				JQ: &internalversion.SelectorJQ{Key: when, Operator: internalversion.SelectorOpIn, Values: []string{"true"}},
			}}},
			Steps: steps,
		},
	}
	if delay != "" {
		zero := int64(0)
		s.Spec.Delay = &internalversion.StageDelay{
			DurationMilliseconds: &zero,
			DurationFrom:         &internalversion.ExpressionFrom{JQ: &internalversion.ExpressionJQ{Expression: delay}},
		}
	}
	return s
}

func status(template string) internalversion.StageStep {
	kind := internalversion.StagePatchTypeStrategicMergePatch
	return internalversion.StageStep{Patch: &internalversion.StagePatch{
		Subresource: "status", Root: "status", Template: template, Type: &kind,
	}}
}

// templateFuncs are what the templates above call. KWOK hands them the object as plain
// data and reads their result as JSON.
func templateFuncs(node func(*corev1.Node, time.Time) corev1.NodeStatus) gotpl.FuncMap {
	return gotpl.FuncMap{
		"PodAdmit": func(obj any, podIP, hostIP string) (string, error) {
			return onPod(obj, func(p *corev1.Pod) corev1.PodStatus { return pods.Admit(p, podIP, hostIP, time.Now()) })
		},
		"PodStep": func(obj any) (string, error) {
			return onPod(obj, func(p *corev1.Pod) corev1.PodStatus { return pods.Step(p, time.Now()) })
		},
		"PodStop": func(obj any) (string, error) {
			return onPod(obj, func(p *corev1.Pod) corev1.PodStatus { return pods.Stop(p, time.Now()) })
		},
		"NodeStatus": func(obj any) (string, error) {
			var n corev1.Node
			if err := convert(obj, &n); err != nil {
				return "", err
			}
			return encode(node(&n, time.Now()))
		},
	}
}

func onPod(obj any, f func(*corev1.Pod) corev1.PodStatus) (string, error) {
	var pod corev1.Pod
	if err := convert(obj, &pod); err != nil {
		return "", err
	}
	return encode(f(&pod))
}

func convert(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("stage: encode object: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("stage: decode object: %w", err)
	}
	return nil
}

func encode(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("stage: encode status: %w", err)
	}
	return string(data), nil
}
