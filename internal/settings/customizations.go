package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// customizationsKey is the setting that holds what is customized of many kinds in one document; prefixes of it name one thing
// of one kind each (reference/argocd.md §3.2).
const customizationsKey = "resource.customizations"

// Customizations are the settings of data with those of the document resource.customizations as settings of their own, which
// is how they are read: resource.customizations.health.<group>_<Kind> and the like. One that is set by itself wins. The kinds
// of the document are named <group>/<Kind>, */* stands for all. What can not be read is told and left out.
func Customizations(data map[string]string) (map[string]string, []error) {
	text := strings.TrimSpace(data[customizationsKey])
	if text == "" {
		return data, nil
	}
	var document map[string]map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return data, []error{fmt.Errorf("%s: %s: %w; it is left out", ConfigMap, customizationsKey, err)}
	}
	all := maps.Clone(data)
	var bad []error
	for _, kind := range slices.Sorted(maps.Keys(document)) {
		name := strings.Replace(kind, "/", "_", 1)
		if kind == "*/*" {
			name = "*"
		}
		for _, what := range slices.Sorted(maps.Keys(document[kind])) {
			word, known := customization(what)
			if !known {
				bad = append(bad, fmt.Errorf("%s: %s: %s: %s is not known", ConfigMap, customizationsKey, shorten(kind), shorten(what)))
				continue
			}
			key, node := customizationsKey+"."+word+"."+name, document[kind][what]
			if _, alone := data[key]; alone {
				continue
			}
			value, err := plain(&node)
			if err != nil {
				bad = append(bad, fmt.Errorf("%s: %s: %s: %s: %w", ConfigMap, customizationsKey, shorten(kind), what, err))
				continue
			}
			all[key] = value
		}
	}
	return all, bad
}

// customization is the word by which what the document says of a kind is a setting of its own.
func customization(what string) (string, bool) {
	switch what {
	case "health.lua":
		return "health", true
	case "health.lua.useOpenLibs":
		return "useOpenLibs", true
	case "actions", "ignoreDifferences", "ignoreResourceUpdates", "knownTypeFields":
		return what, true
	}
	return "", false
}

// plain is a value as a setting of its own has it: text as it is, anything else as YAML.
func plain(node *yaml.Node) (string, error) {
	if node.Kind == yaml.ScalarNode {
		return node.Value, nil
	}
	text, err := yaml.Marshal(node)
	return string(text), err
}
