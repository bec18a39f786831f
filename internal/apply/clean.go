package apply

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Clean is rule 1 of DESIGN.md §2.5 on a copy of o: what Git can't decide is dropped, stringData is folded into data.
func Clean(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := o.DeepCopy()
	delete(out.Object, "status")
	if meta, ok := out.Object["metadata"].(map[string]any); ok {
		for _, field := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"} {
			delete(meta, field)
		}
	}
	gk := out.GroupVersionKind().GroupKind()
	switch {
	case gk.Group == "" && gk.Kind == "Secret":
		if err := foldStringData(out); err != nil {
			return nil, err
		}
	case gk.Group == "argoproj.io" && gk.Kind == "Application":
		delete(out.Object, "operation")
	case gk.Group == "rbac.authorization.k8s.io" && gk.Kind == "ClusterRole" && out.Object["aggregationRule"] != nil:
		delete(out.Object, "rules")
	}
	dropNulls(out.Object)
	return out, nil
}

func foldStringData(o *unstructured.Unstructured) error {
	text, ok := o.Object["stringData"]
	if !ok {
		return nil
	}
	fields, isMap := text.(map[string]any)
	if text != nil && !isMap {
		return fmt.Errorf("%s: stringData is not a map of texts", manifest.KeyOf(o))
	}
	data, isMap := o.Object["data"].(map[string]any)
	if o.Object["data"] != nil && !isMap {
		return fmt.Errorf("%s: data is not a map of texts", manifest.KeyOf(o))
	}
	if data == nil {
		data = map[string]any{}
	}
	for k, v := range fields {
		s, isText := v.(string)
		if !isText && v != nil {
			return fmt.Errorf("%s: stringData.%s is not a text; put it in quotes", manifest.KeyOf(o), k)
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	o.Object["data"] = data
	delete(o.Object, "stringData")
	return nil
}

// dropNulls removes null fields: in an apply they would be owned, and mean nothing.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			if item == nil {
				delete(v, k)
				continue
			}
			dropNulls(item)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}
