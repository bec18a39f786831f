// Package manifest owns Kubernetes objects as values: what a source declares, where in the source it stands, and how its
// text is read. It does no I/O and imports only tree's neighbours among the values.
package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key names an object within one cluster. The version is left out: one object is served in several.
type Key struct {
	Group, Kind, Namespace, Name string
}

// KeyOf is the key of a live or declared object.
func KeyOf(u *unstructured.Unstructured) Key {
	gvk := u.GroupVersionKind()
	return Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// GroupKind is the kind the key belongs to.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// String is how messages name the object: Deployment.apps/shop/web, Namespace/shop.
func (k Key) String() string {
	parts := make([]string, 0, 3)
	kind := k.Kind
	if k.Group != "" {
		kind += "." + k.Group
	}
	parts = append(parts, kind)
	if k.Namespace != "" {
		parts = append(parts, k.Namespace)
	}
	return strings.Join(append(parts, k.Name), "/")
}

// Origin is the place in the source that an object comes from. Fields that are not known are zero.
type Origin struct {
	// Source is the index in spec.sources; 0 for a single source.
	Source int
	// File is the path in the source's tree.
	File string
	// Line is the first line of the document in File, from 1.
	Line int
}

// String is file:line, as far as it is known.
func (o Origin) String() string {
	if o.Line > 0 {
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return o.File
}

// Object is one declared object. Content is shared, not copied: who changes an object copies it first.
type Object struct {
	*unstructured.Unstructured
	Origin Origin
}

// Key is the key of the object.
func (o Object) Key() Key { return KeyOf(o.Unstructured) }

// FieldManager is the name that Lockstep owns fields under.
const FieldManager = "lockstep"
