package install

import (
	"reflect"
	"slices"
)

// widenLimits loosens the validations of have until they accept what those of want accept, and tells whether it had to.
func widenLimits(have, want map[string]any) bool {
	changed := false
	for _, key := range []string{"maximum", "maxLength", "maxItems", "maxProperties"} {
		changed = widenLimit(have, want, key, func(theirs, ours float64) bool { return ours > theirs }) || changed
	}
	for _, key := range []string{"minimum", "minLength", "minItems", "minProperties"} {
		changed = widenLimit(have, want, key, func(theirs, ours float64) bool { return ours < theirs }) || changed
	}
	for _, key := range []string{"exclusiveMaximum", "exclusiveMinimum", "uniqueItems"} {
		if have[key] == true && want[key] != true {
			delete(have, key)
			changed = true
		}
	}
	// Two patterns have no common form: then only their absence accepts both.
	for _, key := range []string{"pattern", "format", "multipleOf"} {
		if have[key] != nil && !reflect.DeepEqual(have[key], want[key]) {
			delete(have, key)
			changed = true
		}
	}
	if want["nullable"] == true && have["nullable"] != true {
		have["nullable"] = true
		changed = true
	}
	return widenEnum(have, want) || changed
}

// widenLimit takes over our limit when it is the looser one; no limit is the loosest.
func widenLimit(have, want map[string]any, key string, looser func(theirs, ours float64) bool) bool {
	theirs, limited := number(have[key])
	if !limited {
		return false
	}
	ours, limited := number(want[key])
	switch {
	case !limited:
		delete(have, key)
	case looser(theirs, ours):
		have[key] = want[key]
	default:
		return false
	}
	return true
}

func widenEnum(have, want map[string]any) bool {
	theirs, limited := have["enum"].([]any)
	if !limited {
		return false
	}
	ours, limited := want["enum"].([]any)
	if !limited {
		delete(have, "enum")
		return true
	}
	all := slices.Clone(theirs)
	for _, value := range ours {
		if !slices.ContainsFunc(all, func(v any) bool { return reflect.DeepEqual(v, value) }) {
			all = append(all, value)
		}
	}
	have["enum"] = all
	return len(all) > len(theirs)
}

// number reads what JSON decoders make of a number.
func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
