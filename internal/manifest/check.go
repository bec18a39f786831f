package manifest

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// add takes in what one document holds, lists item by item.
func (p *parser) add(v any, line, depth int) error {
	if v == nil {
		return nil
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return p.errorAt(line, "the document is a %s, not an object", typeName(v))
	}
	if items, ok := listItems(obj); ok {
		return p.addItems(obj, items, line, depth)
	}
	dropped, err := check(obj)
	if err != nil {
		return &ParseError{Origin: Origin{File: p.file, Line: line}, Object: nameOf(obj), Err: err}
	}
	for _, field := range dropped {
		p.warnAt(line, "%s: %s is null and left out", nameOf(obj), field)
	}
	if len(p.objects) >= p.opts.MaxObjects {
		return p.errorAt(line, "holds more than %d objects", p.opts.MaxObjects)
	}
	p.objects = append(p.objects, Object{
		Unstructured: &unstructured.Unstructured{Object: obj},
		Origin:       Origin{File: p.file, Line: line},
	})
	return nil
}

func (p *parser) addItems(list map[string]any, items []any, line, depth int) error {
	if depth >= p.opts.MaxDepth {
		return p.errorAt(line, "holds lists more than %d levels deep", p.opts.MaxDepth)
	}
	for _, item := range items {
		if obj, ok := item.(map[string]any); ok {
			inheritKind(list, obj)
		}
		if err := p.add(item, line, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// listItems tells whether obj is a list. A kind that ends in List and has a name is an object of its own.
func listItems(obj map[string]any) ([]any, bool) {
	kind, _ := obj["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	if meta, ok := obj["metadata"].(map[string]any); ok && meta["name"] != nil {
		return nil, false
	}
	items, ok := obj["items"].([]any)
	// "items: null" is how an empty list is often written.
	return items, ok || kind == "List" && obj["items"] == nil
}

// inheritKind gives an item of a typed list (ConfigMapList) the kind of the list, as kubectl does.
func inheritKind(list, item map[string]any) {
	kind := strings.TrimSuffix(list["kind"].(string), "List")
	if kind == "" || item["kind"] != nil || item["apiVersion"] != nil {
		return
	}
	item["kind"], item["apiVersion"] = kind, list["apiVersion"]
}

// Check says what keeps obj from being a Kubernetes object, as Parse would. Null labels and annotations are dropped.
func Check(obj map[string]any) error {
	_, err := check(obj)
	return err
}

// check says what keeps obj from being a Kubernetes object. It drops null labels and annotations and returns their paths.
func check(obj map[string]any) (dropped []string, err error) {
	if obj["apiVersion"] == nil && obj["kind"] == nil {
		return nil, ErrNotManifest
	}
	apiVersion, err := text(obj, "", "apiVersion")
	if err != nil {
		return nil, err
	}
	kind, err := text(obj, "", "kind")
	switch {
	case err != nil:
		return nil, err
	case apiVersion == "":
		return nil, errors.New("apiVersion is missing")
	case kind == "":
		return nil, errors.New("kind is missing")
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return nil, fmt.Errorf("apiVersion %q is not of the form group/version", apiVersion)
	}
	return checkMetadata(obj, asksOnly(apiVersion, kind))
}

// asksOnly tells that objects of the kind are questions to the API server, which have no name: access and token reviews, and
// by their name those of other groups, too.
func asksOnly(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == "authorization.k8s.io" || group == "authentication.k8s.io" || strings.HasSuffix(kind, "Review")
}

func checkMetadata(obj map[string]any, nameless bool) (dropped []string, err error) {
	meta, ok := obj["metadata"].(map[string]any)
	if !ok && obj["metadata"] != nil {
		return nil, fmt.Errorf("metadata is a %s, not a mapping", typeName(obj["metadata"]))
	}
	found := false
	for _, field := range []string{"name", "generateName", "namespace"} {
		value, err := text(meta, "metadata.", field)
		if err != nil {
			return nil, err
		}
		found = found || field != "namespace" && value != ""
	}
	if !found && !nameless {
		return nil, errors.New("metadata.name is missing")
	}
	for _, field := range []string{"labels", "annotations"} {
		gone, err := checkTexts(meta, field)
		if err != nil {
			return nil, err
		}
		dropped = append(dropped, gone...)
	}
	return dropped, nil
}

// checkTexts wants text for every label or annotation: the API server refuses numbers there, and readers would see none.
func checkTexts(meta map[string]any, field string) (dropped []string, err error) {
	if meta[field] == nil {
		delete(meta, field)
		return nil, nil
	}
	values, ok := meta[field].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("metadata.%s is a %s, not a mapping", field, typeName(meta[field]))
	}
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		switch v := values[k].(type) {
		case string:
		case nil:
			delete(values, k)
			dropped = append(dropped, "metadata."+field+"."+k)
		case map[string]any, []any:
			return nil, fmt.Errorf("metadata.%s.%s is a %s, not text", field, k, typeName(v))
		default:
			return nil, fmt.Errorf("metadata.%s.%s is the %s %v, not text: write it in quotes", field, k, typeName(v), v)
		}
	}
	return dropped, nil
}

func text(m map[string]any, prefix, field string) (string, error) {
	switch v := m[field].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case map[string]any, []any:
		return "", fmt.Errorf("%s%s is a %s, not text", prefix, field, typeName(v))
	default:
		return "", fmt.Errorf("%s%s is the %s %v, not text: write it in quotes", prefix, field, typeName(v), v)
	}
}

// nameOf is Kind/name as far as they are there.
func nameOf(obj map[string]any) string {
	kind, _ := obj["kind"].(string)
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		name, _ = meta["generateName"].(string)
	}
	return strings.Trim(kind+"/"+name, "/")
}

func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "mapping"
	case []any:
		return "list"
	case string:
		return "text"
	case bool:
		return "truth value"
	case int64, float64:
		return "number"
	}
	return "null"
}
