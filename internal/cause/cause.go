// Package cause owns the question why something is not well: a pure function from an object, what belongs to it and the
// recent events to one sentence with the next step, and the chain from the object down to what explains it.
//
// A cause is stable over time: it holds no counters, times, addresses of pods or generated names, so that it changes only
// when what it tells of does. Pods are told by what they belong to.
//
// The only places that read the texts of other programs, the kubelet, the scheduler and the API server, are image.go,
// schedule.go, refusal.go and volume.go. Package cause imports the API machinery's types and our values, does no I/O and
// holds no client.
package cause

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// Cause is why something is not well.
type Cause struct {
	// Reason is the kind of cause, one word for programs.
	Reason Reason `json:"reason"`
	// Sentence says what is wrong; it begins with the object.
	Sentence string `json:"sentence"`
	// Next is what can be done about it.
	Next string `json:"next"`
	// Chain leads from the object that was asked about down to what explains it.
	Chain []Link `json:"chain"`
}

// Link is one object of a chain and what it says.
type Link struct {
	Object string `json:"object"`
	Says   string `json:"says,omitempty"`
}

// Object is an object of the cluster with the health that was found for it; the health may be empty.
type Object struct {
	Fields field.Map
	Health v1alpha1.HealthStatus
}

// Input is what a cause is found in.
type Input struct {
	// Root is the object asked about.
	Root Object
	// Subtree is what belongs to it, in any order: by owner references, or, for an application, as what it manages.
	Subtree []Object
	// Events are recent Events (v1 or events.k8s.io/v1) of any of these; others are left alone.
	Events []field.Map
	// LastLine, where it is known, is the last line that a container of a pod wrote before it stopped. Nil leaves it out: it
	// may hold anything, so that a cause which is written into a custom resource must do without.
	LastLine func(namespace, pod, container string) string
}

// Of finds the cause that explains most: the deepest, and among equals the gravest; false when all is well or nothing says
// why not.
func Of(in Input) (Cause, bool) {
	t := newTree(in)
	found, ok := t.search(t.root)
	return found.Cause, ok
}

// candidate is a cause with how much it explains.
type candidate struct {
	Cause
	weight int
}

// Weights of causes. What stopped for good weighs more than what waits, and what only repeats that something is not well
// weighs least.
const (
	echoes = iota + 1
	waits
	blocks
	fails
)

// better tells whether a explains more than b. Equals are ordered by their text, so that the same one is told every time.
func better(a, b candidate) bool {
	if a.weight != b.weight {
		return a.weight > b.weight
	}
	return a.Sentence < b.Sentence
}

// search finds the best cause at a node or below it. What is below explains what is above, unless it only echoes it.
func (t *tree) search(n *node) (candidate, bool) {
	if n.well() {
		return candidate{}, false
	}
	best, found := candidate{}, false
	for _, child := range n.children {
		if c, ok := t.search(child); ok && (!found || better(c, best)) {
			best, found = c, true
		}
	}
	own, ok := t.explain(n)
	if ok && (!found || own.weight > best.weight) {
		best, found = own, true
	}
	if found {
		best.Chain = append([]Link{{Object: n.title(), Says: n.says()}}, best.Chain...)
	}
	return best, found
}

// explain is what a node itself says of why it is not well.
func (t *tree) explain(n *node) (candidate, bool) {
	rules := []func(*node) (candidate, bool){t.deleting}
	if rule := t.ruleOf(n.kind + "." + n.group); rule != nil {
		rules = append(rules, rule)
	}
	rules = append(rules, t.custom, t.refusedEvent, echo)
	for _, rule := range rules {
		if c, ok := rule(n); ok {
			return c, true
		}
	}
	return candidate{}, false
}

func (t *tree) ruleOf(kind string) func(*node) (candidate, bool) {
	switch kind {
	case "Pod.":
		return t.pod
	case "Deployment.apps":
		return t.deployment
	case "ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps":
		return t.replicas
	case "Job.batch":
		return t.job
	case "HorizontalPodAutoscaler.autoscaling":
		return t.autoscaler
	case "PersistentVolumeClaim.":
		return t.claim
	case "Namespace.":
		return t.namespace
	case "Service.":
		return t.service
	}
	return nil
}

// echo repeats the health of an object of which nothing more is known.
func echo(n *node) (candidate, bool) {
	if n.object.Health.Message == "" {
		return candidate{}, false
	}
	switch n.object.Health.Status {
	case v1alpha1.HealthDegraded:
		return n.cause(Unhealthy, echoes+1, n.object.Health.Message, "read the object's status and events, and the log of its controller"), true
	case v1alpha1.HealthProgressing, v1alpha1.HealthUnknown:
		return n.cause(Waiting, echoes, n.object.Health.Message, "wait, or read the object's status and events"), true
	}
	return candidate{}, false
}
