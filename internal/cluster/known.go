package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Known is u without the fields that its schema does not have, and their paths, sorted. The API server refuses them in a
// server-side apply whatever the mode, so they have to be dropped before (DESIGN.md §2.5, rule 4). An object whose schema
// is not known comes back as it is; u itself is never changed.
func (c *Cluster) Known(u *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	converter, err := c.schemas.of(u.GroupVersionKind().GroupVersion())
	if err != nil || converter == nil {
		return u, nil
	}
	kept, dropped, _ := strip(converter, u)
	return kept, dropped
}

// strip drops the fields that the schema does not have, until none is left: the library passes over the rest of a map once
// it has met one, and walks maps in no order. What is at fault besides is left: the API server names it, too.
func strip(converter managedfields.TypeConverter, u *unstructured.Unstructured) (kept *unstructured.Unstructured, dropped []string, left error) {
	kept = u
	for {
		_, left = converter.ObjectToTyped(kept)
		var faults typed.ValidationErrors
		if !errors.As(left, &faults) {
			break
		}
		if kept == u {
			kept = u.DeepCopy()
		}
		before := len(dropped)
		for _, f := range faults {
			path := strings.TrimPrefix(f.Path, ".")
			if f.ErrorMessage == undeclared && drop(kept.Object, path) {
				dropped = append(dropped, path)
			}
		}
		if len(dropped) == before {
			break
		}
	}
	slices.Sort(dropped)
	return kept, slices.Compact(dropped), left
}

// drop removes the field at path, in the library's spelling: spec.containers[name="c"].extra. Keys of maps may hold dots,
// so each key that fits is tried. It tells whether there was one.
func drop(value any, path string) bool {
	switch value := value.(type) {
	case map[string]any:
		for k, child := range value {
			rest, fits := strings.CutPrefix(path, k)
			switch {
			case !fits:
			case rest == "":
				delete(value, k)
				return true
			case (rest[0] == '.' || rest[0] == '[') && drop(child, strings.TrimPrefix(rest, ".")):
				return true
			}
		}
	case []any:
		place, rest, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if !found {
			return false
		}
		for i, child := range value {
			if place == fmt.Sprint(i) || isAt(child, place) {
				if drop(child, strings.TrimPrefix(rest, ".")) {
					return true
				}
			}
		}
	}
	return false
}

// isAt tells whether an entry of a list has the keys that place names, such as name="c" or containerPort=80,protocol="TCP".
func isAt(entry any, place string) bool {
	fields, ok := entry.(map[string]any)
	if !ok {
		return false
	}
	for pair := range strings.SplitSeq(place, ",") {
		k, v, found := strings.Cut(pair, "=")
		have, there := fields[k]
		if !found || there && fmt.Sprint(have) != strings.Trim(v, `"`) {
			return false
		}
	}
	return true
}
