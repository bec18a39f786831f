// Package project owns the rules of an AppProject: which sources, destinations and kinds its applications may use (the
// contract's §1.6). It is pure; every path that renders, applies, deletes or shows asks it.
package project

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// ErrForbidden is the kind of every refusal.
var ErrForbidden = errors.New("not permitted by the project")

// Rules are the rules of one project. The zero value permits no source, no destination and no cluster-scoped kind.
type Rules struct {
	name string
	spec v1alpha1.AppProjectSpec
}

// Of gives the rules of a project.
func Of(p *v1alpha1.AppProject) Rules { return Rules{name: p.Name, spec: p.Spec} }

// Equal tells whether both are the rules of one project and say the same.
func (r Rules) Equal(other Rules) bool { return reflect.DeepEqual(r, other) }

// Anything permits everything: for people who render what they have on their own machine.
func Anything() Rules {
	all := []v1alpha1.ClusterResourceRestrictionItem{{Group: "*", Kind: "*"}}
	return Rules{spec: v1alpha1.AppProjectSpec{
		SourceRepos: []string{"*"}, ClusterResourceWhitelist: all,
		Destinations: []v1alpha1.ApplicationDestination{{Server: "*", Name: "*", Namespace: "*"}},
	}}
}

// Source says why a repository may not be used; nil when it may.
func (r Rules) Source(url string) error {
	if allowed(r.spec.SourceRepos, func(pattern string) bool { return matchURL(pattern, url) }) {
		return nil
	}
	return fmt.Errorf("repository %s is %w %s; add it to sourceRepos", url, ErrForbidden, r.name)
}

// allowed tells whether some pattern matches and no pattern that starts with ! refuses. One that starts with ! matches
// whatever it does not refuse, as in Argo CD: alone it permits everything else.
func allowed(patterns []string, match func(string) bool) bool {
	ok := false
	for _, p := range patterns {
		deny, isDeny := strings.CutPrefix(p, "!")
		matches := match(deny)
		if isDeny && matches {
			return false
		}
		ok = ok || matches || isDeny
	}
	return ok
}

// loose matches without separators: * stands for anything. A pattern that is none matches itself only.
func loose(pattern, s string) bool {
	ok, err := doublestar.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(s, "/", "\x01"))
	return err == nil && ok || pattern == s
}

// Cluster is a destination by both of its names.
type Cluster struct {
	Server, Name string
}

// Destination says why a cluster and namespace may not be used; nil when they may. An empty namespace is that of
// cluster-scoped objects: it matches every rule for the cluster, and no rule for a namespace refuses it.
func (r Rules) Destination(c Cluster, namespace string) error {
	ok := false
	for _, d := range r.spec.Destinations {
		permits, refuses := destination(d, c, namespace)
		if refuses {
			return r.noDestination(c, namespace)
		}
		ok = ok || permits
	}
	if ok {
		return nil
	}
	return r.noDestination(c, namespace)
}

func (r Rules) noDestination(c Cluster, namespace string) error {
	return fmt.Errorf("namespace %q of cluster %s is %w %s; add it to destinations", namespace, pick(c.Name, c.Server), ErrForbidden, r.name)
}

func pick(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// destination holds one rule against a cluster and namespace. A part that starts with ! matches whatever it does not name;
// what it names is refused, where the rule's other part matches.
func destination(d v1alpha1.ApplicationDestination, c Cluster, namespace string) (permits, refuses bool) {
	server := part{pattern: trimServer(d.Server), value: trimServer(c.Server)}
	name := part{pattern: d.Name, value: c.Name}
	cluster := server.matches() || name.matches()
	denied := server.refuses() || name.refuses()
	if namespace == "" {
		return cluster && !denied, denied
	}
	ns := part{pattern: d.Namespace, value: namespace}
	return cluster && !denied && ns.matches(), denied && ns.matches() || cluster && ns.refuses()
}

// part is one pattern of a destination and what it is held against.
type part struct{ pattern, value string }

func (p part) matches() bool {
	deny, isDeny := strings.CutPrefix(p.pattern, "!")
	return p.pattern != "" && loose(deny, p.value) != isDeny
}

func (p part) refuses() bool {
	deny, isDeny := strings.CutPrefix(p.pattern, "!")
	return isDeny && loose(deny, p.value)
}

func trimServer(s string) string { return strings.ToLower(strings.TrimSuffix(s, "/")) }

// Kind says why objects of a kind may not be used; nil when they may.
func (r Rules) Kind(gk metav1.GroupKind, name string, namespaced bool) error {
	if namespaced {
		if r.spec.NamespaceResourceWhitelist != nil && !inKinds(r.spec.NamespaceResourceWhitelist, gk) {
			return r.noKind(gk, "namespaceResourceWhitelist does not name it")
		}
		if inKinds(r.spec.NamespaceResourceBlacklist, gk) {
			return r.noKind(gk, "namespaceResourceBlacklist names it")
		}
		return nil
	}
	if !inCluster(r.spec.ClusterResourceWhitelist, gk, name) {
		return r.noKind(gk, "clusterResourceWhitelist does not name it")
	}
	if inCluster(r.spec.ClusterResourceBlacklist, gk, name) {
		return r.noKind(gk, "clusterResourceBlacklist names it")
	}
	return nil
}

func (r Rules) noKind(gk metav1.GroupKind, why string) error {
	return fmt.Errorf("kind %s is %w %s: %s", pick(strings.Trim(gk.Kind+"."+gk.Group, "."), gk.Kind), ErrForbidden, r.name, why)
}

func inKinds(list []metav1.GroupKind, gk metav1.GroupKind) bool {
	for _, item := range list {
		if loose(item.Group, gk.Group) && loose(item.Kind, gk.Kind) {
			return true
		}
	}
	return false
}

func inCluster(list []v1alpha1.ClusterResourceRestrictionItem, gk metav1.GroupKind, name string) bool {
	for _, item := range list {
		if loose(item.Group, gk.Group) && loose(item.Kind, gk.Kind) && (item.Name == "" || loose(item.Name, name)) {
			return true
		}
	}
	return false
}
