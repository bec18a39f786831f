package cause

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/steady"
)

// deleting explains an object that is being deleted and does not go.
func (t *tree) deleting(n *node) (candidate, bool) {
	if n.fields.Text("metadata", "deletionTimestamp") == "" {
		return candidate{}, false
	}
	if n.kind == "Namespace" && n.group == "" {
		return n.leavingNamespace(), true
	}
	finalizers, _ := n.fields.Value([]string{"metadata", "finalizers"}).([]any)
	var names []string
	for _, value := range finalizers {
		if name, ok := value.(string); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return candidate{}, false
	}
	return n.cause(FinalizerStuck, waits, "it is being deleted and waits for "+finalizerWords(names), "look whether the controller that set the finalizer runs and what it logs; take it away by hand only when that controller is gone for good"), true
}

// finalizerWords name finalizers, the well-known ones with what they wait for.
func finalizerWords(names []string) string {
	known := map[string]string{
		"foregroundDeletion":                         "what it owns to be deleted first (foregroundDeletion)",
		"kubernetes.io/pvc-protection":               "the pods that still use it (kubernetes.io/pvc-protection)",
		"kubernetes.io/pv-protection":                "the claim that still uses it (kubernetes.io/pv-protection)",
		"customresourcecleanup.apiextensions.k8s.io": "its objects to be deleted first (customresourcecleanup.apiextensions.k8s.io)",
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = "its finalizer " + name
		if text, ok := known[name]; ok {
			words[i] = text
		}
	}
	return strings.Join(words, ", ")
}

// namespace explains a namespace. One that is not being deleted has nothing to say.
func (t *tree) namespace(n *node) (candidate, bool) {
	if n.fields.Text("status", "phase") == "Terminating" {
		return n.leavingNamespace(), true
	}
	return candidate{}, false
}

var (
	remains    = regexp.MustCompile(`([\w.-]+) has \d+ resource instances`)
	finalizing = regexp.MustCompile(`([\w./-]+) in \d+ resource instances`)
)

// leavingNamespace says what keeps a namespace from going.
func (n *node) leavingNamespace() candidate {
	const what = "it is being deleted"
	if failed := n.fields.Condition("NamespaceDeletionDiscoveryFailure"); failed.Text("status") == "True" {
		return n.cause(NamespaceTerminating, fails, what+", but an API of the cluster does not answer, so that nobody knows what is in it", "repair or remove the APIService that is not available")
	}
	if failed := n.fields.Condition("NamespaceDeletionContentFailure"); failed.Text("status") == "True" {
		return n.cause(NamespaceTerminating, fails, what+", but what is in it can not be deleted: "+steady.Message(failed.Text("message")), "correct what refuses the deletion")
	}
	if held := n.fields.Condition("NamespaceFinalizersRemaining"); held.Text("status") == "True" {
		return n.cause(NamespaceTerminating, blocks, what+" and waits for the finalizers "+names(finalizing, held.Text("message")), "look whether the controllers of the finalizers run")
	}
	if left := n.fields.Condition("NamespaceContentRemaining"); left.Text("status") == "True" {
		return n.cause(NamespaceTerminating, waits, what+" and still holds "+names(remains, left.Text("message")), "wait until its objects are gone")
	}
	return n.cause(NamespaceTerminating, waits, what, "wait until it is gone")
}

// names are what a pattern finds in a text, each once and in order.
func names(pattern *regexp.Regexp, text string) string {
	var list []string
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		list = append(list, found[1])
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}
