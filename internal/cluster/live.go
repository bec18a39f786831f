package cluster

import (
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Live is what is kept of a live object: identity, the hash of our managedFields entry, health and what steers a prune.
// The object itself is read again by those who need it.
type Live struct {
	Key             manifest.Key
	Version         string
	UID             types.UID
	ResourceVersion string
	// Entry is the hash of the fields we own; empty when we own none.
	Entry string
	// Content is a hash of what could differ from a declaration; only of objects whose Entry does not tell of it.
	Content string
	// Tracking is the mark of an application that the object carries, whether it is a copy or not; else empty.
	Tracking string
	// Owner is the application that the tracking mark names, when the mark names the object itself; else empty.
	Owner string
	// ByLabel tells that Owner is the value of a label: labels are copied, and may be cut, so it proves nothing alone.
	ByLabel bool
	// ByArgoCD tells that Argo CD wrote that label, and nobody copied it; only of objects that we own nothing of.
	ByArgoCD bool
	// Steering holds the annotations that steer prune and delete; nil when there are none.
	Steering map[string]string
	// Controlled tells that a controller made the object; while Controller lives, it is never pruned on its own.
	Controlled bool
	Controller Controller
	// Created is when the API server made the object, in seconds since 1970; 0 when it does not say.
	Created int64
	// Deleting tells that the object has a deletionTimestamp.
	Deleting bool
	// Health by the rules of the kind; HasHealth is false for kinds without a rule.
	Health    v1alpha1.HealthStatus
	HasHealth bool
	// Images of the containers in the object's pod template.
	Images []string
	// URLs the object is reached at from outside.
	URLs []string
}

// Controller is the object that a controller's owner reference names.
type Controller struct {
	APIVersion, Kind, Name string
	UID                    types.UID
}

// Reader turns a full object into what is kept of it. The engine gives it, since the rules of health, tracking and the
// entry hash are not the cluster's.
type Reader func(u *unstructured.Unstructured) Live

// Identity fills the fields of Live that need no rules.
func Identity(u *unstructured.Unstructured) Live {
	l := Live{
		Key: manifest.KeyOf(u), Version: u.GroupVersionKind().Version, UID: u.GetUID(),
		ResourceVersion: u.GetResourceVersion(), Deleting: u.GetDeletionTimestamp() != nil,
	}
	if made := u.GetCreationTimestamp(); !made.IsZero() {
		l.Created = made.Unix()
	}
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		l.Controlled, l.Controller = true, Controller{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name, UID: c.UID}
	}
	for k, v := range u.GetAnnotations() {
		if strings.HasPrefix(k, "argocd.argoproj.io/sync-") || strings.HasPrefix(k, "argocd.argoproj.io/hook") ||
			strings.HasPrefix(k, "argocd.argoproj.io/ignore-") || strings.HasPrefix(k, "argocd.argoproj.io/compare-options") ||
			strings.HasPrefix(k, "helm.sh/") || strings.HasPrefix(k, "lockstep.dev/") {
			if l.Steering == nil {
				l.Steering = map[string]string{}
			}
			l.Steering[k] = v
		}
	}
	return l
}

// relevant tells whether the change from old to l is one that an application must know of: not every status write is.
func (l Live) relevant(old Live) bool {
	return l.UID != old.UID || l.Entry != old.Entry || l.Content != old.Content || l.Tracking != old.Tracking || l.Owner != old.Owner || l.ByLabel != old.ByLabel || l.ByArgoCD != old.ByArgoCD || l.Deleting != old.Deleting ||
		l.HasHealth != old.HasHealth || l.Health.Status != old.Health.Status || l.Health.Message != old.Health.Message ||
		!maps.Equal(l.Steering, old.Steering) || strings.Join(l.URLs, " ") != strings.Join(old.URLs, " ") ||
		strings.Join(l.Images, " ") != strings.Join(old.Images, " ")
}

// newer tells whether resource version a comes after b. Versions of one resource are comparable numbers (Kubernetes 1.35);
// what does not parse counts as newer, so that nothing is lost.
func newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX != nil || errY != nil || x > y
}
