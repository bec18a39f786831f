package install

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/runtime"
)

// Difference is how the schema in a cluster relates to ours. Entries are paths such as spec.source.helm.values, where []
// stands for the items of a list and {} for the values of a map. Every list is sorted.
type Difference struct {
	// Missing are fields that ours has and theirs lacks.
	Missing []string
	// Narrower are fields whose validations refuse values that ours accepts.
	Narrower []string
	// Extra are fields that theirs has and ours lacks.
	Extra []string
	// Rules are fields with rules of theirs (CEL, anyOf and the like) that ours lacks. Nobody can tell whether such a
	// rule refuses what ours accepts, so they are kept and named.
	Rules []string
	// Conflicts are fields that no one schema can serve, each with the reason.
	Conflicts []string
}

// Accepts tells whether theirs takes all that ours takes.
func (d Difference) Accepts() bool {
	return len(d.Missing) == 0 && len(d.Narrower) == 0 && len(d.Conflicts) == 0
}

// Merge returns the smallest widening of theirs that also accepts what ours accepts, and what the two differ in. Both are
// structural schemas of custom resources; neither is changed. Where Conflicts is not empty the result must not be used.
func Merge(theirs, ours map[string]any) (map[string]any, Difference) {
	m := &merger{}
	result := runtime.DeepCopyJSON(theirs)
	m.node("", result, ours)
	for _, list := range []*[]string{&m.diff.Missing, &m.diff.Narrower, &m.diff.Extra, &m.diff.Rules, &m.diff.Conflicts} {
		sort.Strings(*list)
		*list = slices.Compact(*list)
	}
	return result, m.diff
}

// merger collects the difference while it widens a schema in place.
type merger struct{ diff Difference }

// node widens have until it accepts what want accepts.
func (m *merger) node(path string, have, want map[string]any) {
	if !m.kind(path, have, want) {
		return
	}
	if widenLimits(have, want) {
		m.diff.Narrower = append(m.diff.Narrower, name(path))
	}
	for _, rule := range []string{"x-kubernetes-validations", "allOf", "anyOf", "oneOf", "not"} {
		if rule == "anyOf" && have[intOrString] == true {
			continue // it only spells the type out
		}
		if have[rule] != nil && !reflect.DeepEqual(have[rule], want[rule]) {
			m.diff.Rules = append(m.diff.Rules, name(path)+": "+rule)
		}
	}
	if want[keepUnknown] == true && have[keepUnknown] != true {
		have[keepUnknown] = true
		m.diff.Narrower = append(m.diff.Narrower, name(path))
	}
	m.required(path, have, want)
	m.properties(path, have, want)
	m.values(path, have, want)
	m.items(path, have, want)
}

const (
	keepUnknown = "x-kubernetes-preserve-unknown-fields"
	intOrString = "x-kubernetes-int-or-string"
)

// kind makes the types agree; false means that they can not.
func (m *merger) kind(path string, have, want map[string]any) bool {
	theirs, ours := kindOf(have), kindOf(want)
	switch {
	case theirs == ours, theirs == "",
		theirs == intOrString && (ours == "integer" || ours == "string"),
		theirs == "number" && ours == "integer":
		return true
	case ours == intOrString && (theirs == "integer" || theirs == "string"):
		delete(have, "type")
		have[intOrString] = true
		have["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
	case ours == "number" && theirs == "integer":
		have["type"] = "number"
	default:
		m.conflict(path, "%s in the cluster, %s in ours", spoken(theirs), spoken(ours))
		return false
	}
	m.diff.Narrower = append(m.diff.Narrower, name(path))
	return true
}

// required keeps what both demand.
func (m *merger) required(path string, have, want map[string]any) {
	demanded, _ := have["required"].([]any)
	wanted, _ := want["required"].([]any)
	kept := make([]any, 0, len(demanded))
	for _, field := range demanded {
		if slices.Contains(wanted, field) {
			kept = append(kept, field)
			continue
		}
		m.diff.Narrower = append(m.diff.Narrower, join(path, fmt.Sprint(field)))
	}
	switch {
	case len(kept) == len(demanded):
	case len(kept) == 0:
		delete(have, "required")
	default:
		have["required"] = kept
	}
}

// properties adds the fields that have lacks and goes into those that both have.
func (m *merger) properties(path string, have, want map[string]any) {
	theirs, ours := object(have["properties"]), object(want["properties"])
	for field := range theirs {
		if ours[field] == nil && want[keepUnknown] != true {
			m.diff.Extra = append(m.diff.Extra, join(path, field))
		}
	}
	// Sorted, so that a conflict is always found at the same place.
	for _, field := range slices.Sorted(maps.Keys(ours)) {
		at, sub := join(path, field), object(ours[field])
		switch {
		case theirs[field] != nil:
			m.node(at, object(theirs[field]), sub)
		case have[keepUnknown] == true:
			// Unknown fields are kept as they are: the field is there already.
		case have["additionalProperties"] != nil:
			m.conflict(path, "a map in the cluster, an object with fields in ours")
			return
		default:
			if have["properties"] == nil {
				theirs = map[string]any{}
				have["properties"] = theirs
			}
			theirs[field] = runtime.DeepCopyJSON(sub)
			m.diff.Missing = append(m.diff.Missing, at)
		}
	}
}

// values makes the values of maps agree.
func (m *merger) values(path string, have, want map[string]any) {
	ours, isMap := want["additionalProperties"].(map[string]any)
	if !isMap {
		if _, extra := have["additionalProperties"].(map[string]any); extra && want[keepUnknown] != true {
			m.diff.Extra = append(m.diff.Extra, path+"{}")
		}
		return
	}
	theirs, both := have["additionalProperties"].(map[string]any)
	switch {
	case both:
		m.node(path+"{}", theirs, ours)
	case have["additionalProperties"] == true, have[keepUnknown] == true:
	case len(object(have["properties"])) > 0:
		m.conflict(path, "an object with fields in the cluster, a map in ours")
	default:
		have["additionalProperties"] = runtime.DeepCopyJSON(ours)
		m.diff.Missing = append(m.diff.Missing, path+"{}")
	}
}

// items makes the items of lists agree.
func (m *merger) items(path string, have, want map[string]any) {
	theirs, ours := object(have["items"]), object(want["items"])
	switch {
	case ours == nil:
	case theirs != nil:
		m.node(path+"[]", theirs, ours)
	case have[keepUnknown] != true && kindOf(have) != "":
		have["items"] = runtime.DeepCopyJSON(ours)
		m.diff.Missing = append(m.diff.Missing, path+"[]")
	}
}

func (m *merger) conflict(path, format string, args ...any) {
	m.diff.Conflicts = append(m.diff.Conflicts, name(path)+": "+fmt.Sprintf(format, args...))
}

func kindOf(node map[string]any) string {
	if node[intOrString] == true {
		return intOrString
	}
	kind, _ := node["type"].(string)
	return kind
}

func spoken(kind string) string {
	switch kind {
	case "":
		return "any type"
	case intOrString:
		return "integer or string"
	}
	return kind
}

func object(value any) map[string]any {
	result, _ := value.(map[string]any)
	return result
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// name is the path as people read it.
func name(path string) string {
	if path == "" {
		return "the whole object"
	}
	return path
}
