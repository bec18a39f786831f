package cause

import (
	"regexp"
	"slices"
	"strings"
)

var (
	insufficient = regexp.MustCompile(`Insufficient ([\w./-]*[\w])`)
	taint        = regexp.MustCompile(`untolerated taint(?:\(s\))? ?\{?([^},]*)\}?`)
	claimMissing = regexp.MustCompile(`persistentvolumeclaim "([^"]+)" not found`)
)

// unschedulable explains why no node takes a pod, without the numbers of nodes that change all the time.
func (t *tree) unschedulable(n *node, text string) candidate {
	if found := claimMissing.FindStringSubmatch(text); found != nil {
		return n.cause(ClaimMissing, fails, "PersistentVolumeClaim "+place(n.namespace, found[1])+" is not there", "create the claim, or correct its name in the pod")
	}
	if strings.Contains(text, "unbound immediate PersistentVolumeClaims") {
		for _, volume := range n.fields.List("spec", "volumes") {
			claim := t.find("PersistentVolumeClaim", n.namespace, volume.Text("persistentVolumeClaim", "claimName"))
			if claim == nil {
				continue
			}
			if c, ok := t.claim(claim); ok {
				c.Chain = []Link{{Object: claim.title(), Says: claim.says()}}
				return c
			}
		}
		return n.cause(Unschedulable, blocks, "it waits for a PersistentVolumeClaim that is not bound", "look at the claims of the pod")
	}
	var why []string
	for _, found := range insufficient.FindAllStringSubmatch(text, -1) {
		why = append(why, "not enough "+found[1])
	}
	for _, found := range taint.FindAllStringSubmatch(text, -1) {
		why = append(why, "the taint "+strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(found[1], ": ", "=")), "=")+" is not tolerated")
	}
	for _, sign := range schedulingSigns() {
		if strings.Contains(text, sign.text) {
			why = append(why, sign.what)
		}
	}
	slices.Sort(why)
	why = slices.Compact(why)
	if len(why) == 0 {
		return n.cause(Unschedulable, blocks, "no node can take a pod of it", "read the pod's events")
	}
	return n.cause(Unschedulable, blocks, "no node can take a pod of it: "+strings.Join(why, "; "),
		"add nodes, or change what the pod asks for: requests, tolerations, affinity, spread")
}

type schedulingSign struct{ text, what string }

// schedulingSigns are the words of the scheduler for what does not fit.
func schedulingSigns() []schedulingSign {
	return []schedulingSign{
		{"didn't match Pod's node affinity/selector", "its node selector or affinity matches no other node"},
		{"didn't match pod affinity rules", "its pod affinity is not met"},
		{"didn't match pod anti-affinity rules", "its pod anti-affinity forbids it"},
		{"didn't satisfy existing pods anti-affinity rules", "the anti-affinity of another pod forbids it"},
		{"didn't match pod topology spread constraints", "its topology spread forbids it"},
		{"had volume node affinity conflict", "its volume is bound to other nodes"},
		{"didn't find available persistent volumes to bind", "no volume fits its claim"},
		{"exceed max volume count", "nodes have too many volumes"},
		{"Too many pods", "nodes have too many pods"},
		{"didn't have free ports", "its host port is taken"},
		{"were unschedulable", "nodes are cordoned"},
		{"no nodes available to schedule pods", "the cluster has no nodes"},
		{"not enough free storage", "nodes have too little storage"},
		{"cannot allocate all claims", "its devices are not free"},
	}
}
