package cause

import (
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// tree is an input with its objects in their places.
type tree struct {
	root     *node
	nodes    []*node
	lastLine func(namespace, pod, container string) string
}

// node is an object in its place.
type node struct {
	object                       Object
	fields                       field.Map
	group, kind, namespace, name string
	owner                        *node
	children                     []*node
	// events of the object, the newest first.
	events []field.Map
}

func newTree(in Input) *tree {
	t := &tree{root: newNode(in.Root), lastLine: in.LastLine}
	t.nodes = append(t.nodes, t.root)
	byUID := map[string]*node{}
	for _, object := range in.Subtree {
		t.nodes = append(t.nodes, newNode(object))
	}
	for _, n := range t.nodes {
		byUID[n.fields.Text("metadata", "uid")] = n
	}
	delete(byUID, "")
	for _, n := range t.nodes[1:] {
		n.owner = t.root
		for _, ref := range n.fields.List("metadata", "ownerReferences") {
			if owner := byUID[ref.Text("uid")]; owner != nil && !owner.below(n) {
				n.owner = owner
			}
		}
		n.owner.children = append(n.owner.children, n)
	}
	t.placeEvents(in.Events)
	return t
}

func newNode(object Object) *node {
	f := object.Fields
	n := &node{object: object, fields: f, kind: f.Text("kind"), namespace: f.Text("metadata", "namespace"), name: f.Text("metadata", "name")}
	if group, _, ok := strings.Cut(f.Text("apiVersion"), "/"); ok {
		n.group = group
	}
	return n
}

// below tells whether a node is another or lies below it, so that references in a circle make no circle here.
func (n *node) below(other *node) bool {
	for at := n; at != nil; at = at.owner {
		if at == other {
			return true
		}
	}
	return false
}

// placeEvents gives each node its events.
func (t *tree) placeEvents(events []field.Map) {
	type key struct{ kind, namespace, name string }
	byKey := map[key][]field.Map{}
	for _, event := range events {
		about := event.At("involvedObject")
		if about == nil {
			about = event.At("regarding")
		}
		k := key{about.Text("kind"), about.Text("namespace"), about.Text("name")}
		byKey[k] = append(byKey[k], event)
	}
	for _, n := range t.nodes {
		n.events = byKey[key{n.kind, n.namespace, n.name}]
		slices.SortStableFunc(n.events, func(a, b field.Map) int { return strings.Compare(when(b), when(a)) })
	}
}

// when is the time of an event, as text that sorts.
func when(event field.Map) string {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"}} {
		if text := event.Text(path...); text != "" {
			return text
		}
	}
	return ""
}

// event is the message of the newest event with one of some reasons.
func (n *node) event(reasons ...string) string {
	for _, event := range n.events {
		if slices.Contains(reasons, event.Text("reason")) {
			return message(event)
		}
	}
	return ""
}

func message(event field.Map) string {
	if text := event.Text("message"); text != "" {
		return text
	}
	return event.Text("note")
}

// find looks an object up by its kind and name.
func (t *tree) find(kind, namespace, name string) *node {
	for _, n := range t.nodes {
		if n.kind == kind && n.namespace == namespace && n.name == name {
			return n
		}
	}
	return nil
}

// well tells whether there is nothing to explain at a node or below it.
func (n *node) well() bool {
	return n.object.Health.Status.Well() && n.fields.Text("metadata", "deletionTimestamp") == ""
}

// generated tells whether the name of an object was made by a controller.
func (n *node) generated() bool {
	switch n.kind {
	case "Pod", "ReplicaSet", "CertificateRequest", "Order", "Challenge":
		return true
	}
	return n.fields.Text("metadata", "generateName") != ""
}

// subject is the object that a sentence is about: the nearest one with a name that people gave.
func (n *node) subject() string {
	at := n
	for at.generated() && at.owner != nil && at.controlled() {
		at = at.owner
	}
	if at.generated() {
		for _, ref := range at.fields.List("metadata", "ownerReferences") {
			return ref.Text("kind") + " " + place(at.namespace, steady.Message(ref.Text("name")))
		}
	}
	return at.title()
}

// controlled tells whether the owner is one by reference, and not just the application that manages the object.
func (n *node) controlled() bool {
	for _, ref := range n.fields.List("metadata", "ownerReferences") {
		if ref.Text("uid") == n.owner.fields.Text("metadata", "uid") {
			return true
		}
	}
	return false
}

// title names the object: Deployment shop/web.
func (n *node) title() string { return n.kind + " " + place(n.namespace, steady.Message(n.name)) }

func place(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// says is the health of a node in words.
func (n *node) says() string {
	health := n.object.Health
	switch {
	case health.Status == "":
		return ""
	case health.Message == "":
		return string(health.Status)
	}
	return string(health.Status) + ": " + health.Message
}

// cause is a candidate about a node.
func (n *node) cause(reason Reason, weight int, what, next string) candidate {
	return candidate{Cause: Cause{Reason: reason, Sentence: n.subject() + ": " + what, Next: next}, weight: weight}
}
