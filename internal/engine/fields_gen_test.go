package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/engine"
)

// generator makes Applications with one bad field each out of the schema of spec.
type generator struct {
	url, namespace string
	found          []badField
}

// step is a field or, from 0 on, an index on the way to a field.
type step struct {
	field string
	index int
	// around is what the schema wants beside the field.
	around map[string]any
}

// freeText are fields in which every text is right.
func freeText() []string {
	return []string{"values", "value", "patch", "string", "array"}
}

// wrongText are texts that can not be right, by the end of the path.
func wrongText() map[string][]string {
	return map[string][]string{
		".project": {"nowhere"}, ".destination.server": {"https://nowhere.invalid"}, ".destination.name": {"nowhere"}, ".destination.namespace": {"Not_A_Name"},
		".source.repoURL": {"", "ext::x"}, ".sources[1].repoURL": {"", "ext::x"}, ".source.path": {"../x"}, ".sources[1].path": {"../x"}, ".drySource.path": {"../x"},
		".include": {"[a-"}, ".exclude": {"[a-"}, ".libs[0]": {"", "../x"}, ".extVars[0].name": {""}, ".tlas[0].name": {""},
		".ignoreDifferences[0].group": {"[a-"}, ".ignoreDifferences[0].kind": {"", "[a-"}, ".ignoreDifferences[0].name": {"[a-"}, ".ignoreDifferences[0].namespace": {"[a-"},
		".jsonPointers[0]": {"", "spec/x", "/a~2"}, ".jqPathExpressions[0]": {".spec[", "1 +"},
		".valueFiles[0]": {"", "v*[.yaml"}, ".helm.parameters[0].name": {""}, ".fileParameters[0].name": {""}, ".fileParameters[0].path": {""},
		".releaseName": {"Not A Name", strings.Repeat("a", 54)}, ".helm.version": {"v9"}, ".helm.namespace": {"Not_A_Name"}, ".kustomize.namespace": {"Not_A_Name"},
		".kubeVersion": {"newest"}, ".apiVersions[0]": {""}, ".images[0]": {"", "nginx", "=x:1"}, ".components[0]": {""}, ".replicas[0].name": {""},
		".target.group": {"("}, ".target.kind": {"("}, ".target.name": {"("}, ".target.namespace": {"("}, ".target.version": {"("},
		".labelSelector": {"a in ("}, ".annotationSelector": {"a in ("},
		".backoff.duration": {"soon", "-1s"}, ".backoff.maxDuration": {"later"}, ".syncOptions[0]": {"", "Nonsense=yes", "Prune=perhaps"},
	}
}

func wrongNumber() map[string]int64 {
	return map[string]int64{".revisionHistoryLimit": -1, ".retry.limit": -2, ".backoff.factor": 0}
}

func wrongMap() map[string]map[string]any {
	return map[string]map[string]any{
		".commonLabels": {"-bad-": "x"}, ".commonAnnotations": {"-bad-": "x"}, ".options": {"nonsense": true},
		".managedNamespaceMetadata.labels": {"team": "no label value!"}, ".managedNamespaceMetadata.annotations": {"-bad-": "x"},
	}
}

func (g *generator) walk(schema map[string]any, path []step) {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		child, _ := properties[name].(map[string]any)
		g.node(child, append(slices.Clone(path), step{field: name, index: -1, around: g.required(schema)}))
	}
}

func (g *generator) node(schema map[string]any, path []step) {
	text := written(path)
	if anyOf := schema["x-kubernetes-int-or-string"]; anyOf == true {
		g.add(path, "a list", []any{}, true)
		g.add(path, "no number", "many", false)
		g.add(path, "below 0", int64(-1), false)
		return
	}
	switch schema["type"] {
	case "string":
		g.add(path, "a number", int64(17), true)
		if !slices.Contains(freeText(), path[len(path)-1].field) && !strings.HasPrefix(text, "spec.info") {
			g.add(path, "too long", strings.Repeat("a", 5000), false)
		}
		for end, values := range wrongText() {
			for _, v := range values {
				if strings.HasSuffix(text, end) {
					g.add(path, fmt.Sprintf("%.20q", v), v, false)
				}
			}
		}
	case "integer", "boolean":
		g.add(path, "text", "x", true)
		for end, v := range wrongNumber() {
			if strings.HasSuffix(text, end) {
				g.add(path, fmt.Sprint(v), v, false)
			}
		}
	case "array":
		g.add(path, "text", "x", true)
		items, _ := schema["items"].(map[string]any)
		at := 0
		if text == "spec.sources" {
			at = 1
		}
		path = slices.Clone(path)
		path[len(path)-1].index = at
		g.node(items, path)
	case "object":
		g.add(path, "text", "x", true)
		for end, v := range wrongMap() {
			if strings.HasSuffix(text, end) {
				g.add(path, "a bad key or value", v, false)
			}
		}
		g.walk(schema, path)
	}
}

// required are values for what the schema wants to be there.
func (g *generator) required(schema map[string]any) map[string]any {
	out := map[string]any{}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		switch name {
		case "repoURL":
			out["repoURL"] = g.url
		case "path":
			out["path"] = "app"
		case "targetRevision":
			out["targetRevision"] = "HEAD"
		case "targetBranch":
			out["targetBranch"] = "main"
		case "count":
			out["count"] = int64(1)
		case "kind":
			out["kind"] = "ConfigMap"
		case "destination", "project", "drySource", "syncSource":
		default:
			out[name.(string)] = "x"
		}
	}
	return out
}

// written is the path as people write it.
func written(path []step) string {
	text := "spec"
	for _, s := range path {
		text += "." + s.field
		if s.index >= 0 {
			text += fmt.Sprintf("[%d]", s.index)
		}
	}
	return text
}

// add makes a spec that is right but for the field.
func (g *generator) add(path []step, how string, value any, refused bool) {
	spec := map[string]any{
		"project": "default", "destination": map[string]any{"server": engine.InClusterServer, "namespace": g.namespace},
	}
	good := map[string]any{"repoURL": g.url, "path": "app"}
	switch path[0].field {
	case "sources":
		spec["sources"] = []any{good, map[string]any{"repoURL": g.url, "path": "app"}}
	case "sourceHydrator":
		spec["sourceHydrator"] = map[string]any{
			"drySource":  map[string]any{"repoURL": g.url, "targetRevision": "HEAD", "path": "app"},
			"syncSource": map[string]any{"targetBranch": "main", "path": "app"},
		}
	default:
		spec["source"] = good
	}
	if written(path) == "spec.destination.name" {
		delete(spec["destination"].(map[string]any), "server")
	}
	put(spec, path, value)
	text := written(path)
	beside(spec, path, text)
	g.found = append(g.found, badField{path: text, how: how, object: spec, refused: refused})
}

// beside adds what else is needed for the field to be looked at at all.
func beside(spec map[string]any, path []step, text string) {
	for i := range path {
		switch {
		case path[i].field == "helm" && path[0].field != "sourceHydrator":
			put(spec, append(slices.Clone(path[:i]), step{field: "path", index: -1}), "chart")
		case path[i].field == "patches" && i+1 < len(path) && !strings.HasSuffix(text, "].path") && !strings.HasSuffix(text, "].patch"):
			put(spec, append(slices.Clone(path[:i+1]), step{field: "patch", index: -1}), "x")
		case strings.HasSuffix(text, ".fileParameters[0].path") && i+1 == len(path):
			put(spec, append(slices.Clone(path[:i]), step{field: "name", index: -1}), "x")
		}
	}
}

// put sets the value, with what belongs around it on the way.
func put(object map[string]any, path []step, value any) {
	for k, v := range path[0].around {
		if _, there := object[k]; !there && k != path[0].field {
			object[k] = v
		}
	}
	s := path[0]
	if s.index < 0 {
		if len(path) == 1 {
			object[s.field] = value
			return
		}
		next, ok := object[s.field].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[s.field] = next
		}
		put(next, path[1:], value)
		return
	}
	list, _ := object[s.field].([]any)
	for len(list) <= s.index {
		list = append(list, map[string]any{})
	}
	object[s.field] = list
	if len(path) == 1 {
		list[s.index] = value
		return
	}
	put(list[s.index].(map[string]any), path[1:], value)
}
