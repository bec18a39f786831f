// Command slim takes the descriptions out of the status and operation of generated CRDs, where the same source types
// stand a dozen times over: people explain the spec, and the file stays below the limit of an annotation.
//
// Usage: slim FILE...
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := slim(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// slim rewrites one file.
func slim(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return fmt.Errorf("spec.versions is empty; this is not a CRD")
	}
	for _, v := range versions {
		properties := dig(v, "schema", "openAPIV3Schema", "properties")
		for _, field := range []string{"status", "operation"} {
			dropDescriptions(properties[field], false)
		}
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte("---\n"), out...), 0o644)
}

// dig follows keys through objects.
func dig(value any, keys ...string) map[string]any {
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	object, _ := value.(map[string]any)
	return object
}

// dropDescriptions deletes the descriptions of a schema. Below properties, description is the name of a field.
func dropDescriptions(schema any, names bool) {
	object, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if !names {
		delete(object, "description")
	}
	for key, value := range object {
		dropDescriptions(value, key == "properties" && !names)
	}
}
