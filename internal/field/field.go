// Package field owns the reading of fields out of objects whose types are not known here: plain maps as JSON decoders make
// them, and the conventions of a status that most controllers keep. It imports nothing and does no I/O.
package field

// Map is an object, or a part of one, as JSON decoders make it. A field that is missing or of another type reads as
// absent: what a controller wrote wrongly must not stop the health of everything else.
type Map map[string]any

// At goes down to an object; a nil map when it is not there.
func (f Map) At(path ...string) Map {
	for _, name := range path {
		next, _ := f[name].(map[string]any)
		f = next
	}
	return f
}

// Value reads the field at the end of a path.
func (f Map) Value(path []string) any {
	last := len(path) - 1
	return f.At(path[:last]...)[path[last]]
}

// Text is "" when it is not there.
func (f Map) Text(path ...string) string {
	value, _ := f.Value(path).(string)
	return value
}

// Flag is false when it is not there.
func (f Map) Flag(path ...string) bool {
	value, _ := f.Value(path).(bool)
	return value
}

// Number tells whether it is there.
func (f Map) Number(path ...string) (int64, bool) {
	switch value := f.Value(path).(type) {
	case int64:
		return value, true
	case int:
		return int64(value), true
	case float64:
		return int64(value), true
	}
	return 0, false
}

// Count is 0 when it is not there.
func (f Map) Count(path ...string) int64 {
	value, _ := f.Number(path...)
	return value
}

// List holds the objects of a list; entries that are no objects are left out.
func (f Map) List(path ...string) []Map {
	values, _ := f.Value(path).([]any)
	result := make([]Map, 0, len(values))
	for _, value := range values {
		if entry, ok := value.(map[string]any); ok {
			result = append(result, entry)
		}
	}
	return result
}

// Condition finds a condition of the status by its type; nil when it is not there.
func (f Map) Condition(kind string) Map {
	for _, condition := range f.List("status", "conditions") {
		if condition.Text("type") == kind {
			return condition
		}
	}
	return nil
}

// Holds tells whether a condition is there and True.
func (f Map) Holds(kind string) bool { return f.Condition(kind).Text("status") == "True" }

// Observed tells whether the status belongs to the generation of the object. Its controller always reports one.
func (f Map) Observed() bool {
	seen, ok := f.Number("status", "observedGeneration")
	return ok && seen >= f.Count("metadata", "generation")
}

// Stale tells whether the status says itself that it belongs to an older generation. For kinds that may not report one.
func (f Map) Stale() bool {
	seen, ok := f.Number("status", "observedGeneration")
	return ok && seen < f.Count("metadata", "generation")
}

// Desired is the number of replicas asked for; as the API server does, 1 when it is not there.
func (f Map) Desired() int64 {
	if n, ok := f.Number("spec", "replicas"); ok {
		return n
	}
	return 1
}

// Outdated tells whether a condition says itself that it was written for an older generation.
func (f Map) Outdated(condition Map) bool {
	seen, ok := condition.Number("observedGeneration")
	return ok && seen < f.Count("metadata", "generation")
}
