package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// manager is the name under which Lockstep owns fields.
const manager = "lockstep"

// fingerprint is what a write by Lockstep would change of each object of an application: who it is, its generation, and
// when Lockstep's fields were last set.
func (l *laboratory) fingerprint(ctx context.Context, name string) (map[string]string, error) {
	marks := map[string]string{}
	mapper, err := l.kube.Mapper()
	if err != nil {
		return nil, err
	}
	for _, r := range l.board.Get(name).Status.Resources {
		kind := schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, err
		}
		namespace := r.Namespace
		if m.Scope.Name() == meta.RESTScopeNameRoot {
			namespace = ""
		}
		o, err := l.kube.Resource(m.Resource).Namespace(namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		marks[fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)] = mark(o)
	}
	return marks, nil
}

func mark(o *unstructured.Unstructured) string {
	text := fmt.Sprintf("%s %d", o.GetUID(), o.GetGeneration())
	for _, f := range o.GetManagedFields() {
		if f.Manager == manager && f.Subresource == "" {
			text += fmt.Sprintf(" %s %s", f.Operation, f.Time)
		}
	}
	return text
}
