package engine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastApplied holds a whole object, with the values of a Secret.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// presentable are copies of two states of an object for people: without what the API server keeps for itself, and
// without the values of a Secret. Either may be nil.
func presentable(live, next *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured) {
	live, next = bare(live), bare(next)
	for _, u := range []*unstructured.Unstructured{live, next} {
		if u != nil && u.GetKind() == "Secret" && u.GroupVersionKind().Group == "" {
			hideValues(live, next)
			break
		}
	}
	return live, next
}

func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	u = u.DeepCopy()
	delete(u.Object, "status")
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", lastApplied)
	return u
}

// hideValues replaces the values of two states of a Secret by words that are equal where the values are.
func hideValues(live, next *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		before, after := values(live, field), values(next, field)
		for k, v := range after {
			old, had := before[k]
			after[k] = "(hidden)"
			if had && fmt.Sprint(old) != fmt.Sprint(v) {
				after[k] = "(hidden, another value)"
			}
		}
		for k := range before {
			before[k] = "(hidden)"
		}
	}
}

// values is the map in a field of a copy of ours; one that is no map is dropped, since it can not be hidden key by key.
func values(u *unstructured.Unstructured, field string) map[string]any {
	if u == nil {
		return nil
	}
	m, ok := u.Object[field].(map[string]any)
	if !ok {
		delete(u.Object, field)
	}
	return m
}
