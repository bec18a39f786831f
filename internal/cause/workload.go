package cause

import (
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// deployment explains a rollout that did not get further. What its pods say explains more.
func (t *tree) deployment(n *node) (candidate, bool) {
	if failure := n.fields.Condition("ReplicaFailure"); failure.Text("status") == "True" {
		return n.refused(failure.Text("message"), "its pods can not be created"), true
	}
	if n.fields.Condition("Progressing").Text("reason") == "ProgressDeadlineExceeded" {
		return n.cause(RolloutDeadline, waits, "its rollout did not get further within its deadline", "look at its pods; a new change or a rollback starts again"), true
	}
	return candidate{}, false
}

// replicas explains sets of pods that can not be made.
func (t *tree) replicas(n *node) (candidate, bool) {
	if failure := n.fields.Condition("ReplicaFailure"); failure.Text("status") == "True" && failure.Text("reason") == "FailedCreate" {
		return n.refused(failure.Text("message"), "its pods can not be created"), true
	}
	if text := n.event("FailedCreate"); text != "" && len(n.pods()) == 0 {
		return n.refused(text, "its pods can not be created"), true
	}
	return candidate{}, false
}

func (n *node) pods() []*node {
	var pods []*node
	for _, child := range n.children {
		if child.kind == "Pod" {
			pods = append(pods, child)
		}
	}
	return pods
}

// job explains a Job. How its pods ended explains more, except when its time was up.
func (t *tree) job(n *node) (candidate, bool) {
	failed := n.fields.Condition("Failed")
	switch {
	case failed.Text("status") != "True":
		if text := n.event("FailedCreate"); text != "" && len(n.pods()) == 0 {
			return n.refused(text, "its pods can not be created"), true
		}
		return candidate{}, false
	case failed.Text("reason") == "DeadlineExceeded":
		return n.cause(JobDeadline, fails+1, "it ran longer than its deadline allows", "raise activeDeadlineSeconds, or look why it takes so long"), true
	}
	why := map[string]string{
		"BackoffLimitExceeded":     "its pods failed more often than its backoff limit allows",
		"PodFailurePolicy":         "a pod failed in a way that its failure policy does not retry",
		"MaxFailedIndexesExceeded": "more of its indexes failed than it allows",
		"FailedIndexes":            "some of its indexes failed",
	}[failed.Text("reason")]
	if why == "" {
		why = strings.TrimRight("it failed: "+steady.Message(failed.Text("message")), ": ")
	}
	return n.cause(JobFailed, blocks, why, "read the log of its pods; correct what fails and sync again"), true
}

// autoscaler explains one that can not read metrics or its target.
func (t *tree) autoscaler(n *node) (candidate, bool) {
	if able := n.fields.Condition("AbleToScale"); able.Text("status") == "False" && able.Text("reason") == "FailedGetScale" {
		target := n.fields.At("spec", "scaleTargetRef")
		return n.cause(NoMetrics, blocks, "it can not find what it scales, "+target.Text("kind")+" "+target.Text("name"), "correct scaleTargetRef"), true
	}
	active := n.fields.Condition("ScalingActive")
	if active.Text("status") != "False" || !strings.HasPrefix(active.Text("reason"), "Failed") {
		return candidate{}, false
	}
	text := active.Text("message")
	switch {
	case strings.Contains(text, "missing request for "):
		_, resource, _ := strings.Cut(text, "missing request for ")
		return n.cause(NoMetrics, blocks, "it has no metrics: a container asks for no "+steady.Message(resource), "set resources.requests of each container"), true
	case strings.Contains(text, "could not find the requested resource"), strings.Contains(text, "no metrics returned"), strings.Contains(text, "unable to fetch metrics from"):
		return n.cause(NoMetrics, blocks, "it has no metrics: the metrics API does not serve them ("+active.Text("reason")+")", "install or repair the metrics server or adapter"), true
	}
	return n.cause(NoMetrics, blocks, "it has no metrics: "+steady.Message(text), "look at its metrics and at what serves them"), true
}

// service explains a load balancer that can not be made.
func (t *tree) service(n *node) (candidate, bool) {
	if text := n.event("SyncLoadBalancerFailed", "CreatingLoadBalancerFailed"); text != "" && n.object.Health.Status == v1alpha1.HealthProgressing {
		return n.cause(LoadBalancer, blocks, "its load balancer can not be made: "+steady.Message(text), "look at the cloud's permissions, quotas and the service's annotations"), true
	}
	return candidate{}, false
}

// messageOf is the message of a condition with its reason where there is no message.
func messageOf(condition field.Map) string {
	if text := steady.Message(condition.Text("message")); text != "" {
		return text
	}
	return condition.Text("reason")
}
