package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
)

// permission asks whether a project permits objects of a kind in a namespace.
type permission struct {
	project   string
	kind      schema.GroupKind
	namespace string
	// name counts for cluster-scoped objects only, which rules may name one by one.
	name string
}

// permissions answers each question once.
type permissions struct {
	projects *projects
	known    map[permission]bool
}

// permits tells whether a project permits an object; one that does not exist may permit what is in a namespace by tomorrow.
func (p permissions) permits(name string, k manifest.Key) bool {
	q := permission{project: name, kind: k.GroupKind(), namespace: k.Namespace}
	if k.Namespace == "" {
		q.name = k.Name
	}
	answer, known := p.known[q]
	if !known {
		rules, exists := p.projects.rules(name)
		answer = exists && permitted(rules, k) == nil || !exists && k.Namespace != ""
		p.known[q] = answer
	}
	return answer
}

// permitted says why a project does not permit an object in the cluster; nil when it does.
func permitted(rules project.Rules, k manifest.Key) error {
	if err := rules.Kind(metav1.GroupKind{Group: k.Group, Kind: k.Kind}, k.Name, k.Namespace != ""); err != nil {
		return err
	}
	return rules.Destination(project.Cluster{Server: InClusterServer, Name: InClusterName}, k.Namespace)
}
