package health

// fields is an object, or a part of one, as JSON decoders make it. A field that is missing or of another type reads as
// absent: what a controller wrote wrongly must not stop the health of everything else.
type fields map[string]any

// at goes down to an object; a nil map when it is not there.
func (f fields) at(path ...string) fields {
	for _, name := range path {
		next, _ := f[name].(map[string]any)
		f = next
	}
	return f
}

// value reads the field at the end of a path.
func (f fields) value(path []string) any {
	last := len(path) - 1
	return f.at(path[:last]...)[path[last]]
}

// text is "" when it is not there.
func (f fields) text(path ...string) string {
	value, _ := f.value(path).(string)
	return value
}

// flag is false when it is not there.
func (f fields) flag(path ...string) bool {
	value, _ := f.value(path).(bool)
	return value
}

// number tells whether it is there.
func (f fields) number(path ...string) (int64, bool) {
	switch value := f.value(path).(type) {
	case int64:
		return value, true
	case int:
		return int64(value), true
	case float64:
		return int64(value), true
	}
	return 0, false
}

// count is 0 when it is not there.
func (f fields) count(path ...string) int64 {
	value, _ := f.number(path...)
	return value
}

// list holds the objects of a list; entries that are no objects are left out.
func (f fields) list(path ...string) []fields {
	values, _ := f.value(path).([]any)
	result := make([]fields, 0, len(values))
	for _, value := range values {
		if entry, ok := value.(map[string]any); ok {
			result = append(result, entry)
		}
	}
	return result
}

// condition finds a condition of the status by its type; nil when it is not there.
func (f fields) condition(kind string) fields {
	for _, condition := range f.list("status", "conditions") {
		if condition.text("type") == kind {
			return condition
		}
	}
	return nil
}

// holds tells whether a condition is there and True.
func (f fields) holds(kind string) bool { return f.condition(kind).text("status") == "True" }

// observed tells whether the status belongs to the generation of the object. Its controller always reports one.
func (f fields) observed() bool {
	seen, ok := f.number("status", "observedGeneration")
	return ok && seen >= f.count("metadata", "generation")
}

// stale tells whether the status says itself that it belongs to an older generation. For kinds that may not report one.
func (f fields) stale() bool {
	seen, ok := f.number("status", "observedGeneration")
	return ok && seen < f.count("metadata", "generation")
}

// desired is the number of replicas asked for; as the API server does, 1 when it is not there.
func (f fields) desired() int64 {
	if n, ok := f.number("spec", "replicas"); ok {
		return n
	}
	return 1
}
