package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxText bounds every field that is a name, a path, an address or a pattern, in bytes: a long one is a mistake, and pattern
// libraries must not be tried out with it.
const maxText = 4096

// isFree tells that a field holds text of any length: what is set to a value, a patch, a note. The API server bounds the
// whole.
func isFree(path string) bool {
	for _, end := range []string{
		".values", ".value", ".patch", ".string", ".valuesObject", ".map", ".array", ".info", ".commonAnnotations", ".annotations",
	} {
		if before, _, _ := strings.Cut(path[strings.LastIndex(path, ".")+1:], "["); "."+before == end {
			return true
		}
	}
	return false
}

// checkLengths looks at every text below v; it names the first that is too long.
func checkLengths(path string, v any) error { return lengths(path, reflect.ValueOf(v)) }

func lengths(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > maxText {
			return fmt.Errorf("%s: is %d bytes long; at most %d are read", path, v.Len(), maxText)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return lengths(path, v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := lengths(fmt.Sprintf("%s[%d]", path, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range slices.Sorted(maps.Keys(texts(v))) {
			if len(key) > maxText {
				return fmt.Errorf("%s: a key is %d bytes long; at most %d are read", path, len(key), maxText)
			}
			if err := lengths(path+"["+key+"]", v.MapIndex(reflect.ValueOf(key))); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, embedded := jsonName(v.Type().Field(i))
			at := path
			if !embedded {
				at += "." + name
			}
			if isFree(at) {
				continue
			}
			if err := lengths(at, v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// texts are the keys of a map; all maps of the API have texts as keys.
func texts(m reflect.Value) map[string]bool {
	out := map[string]bool{}
	for _, k := range m.MapKeys() {
		out[k.String()] = true
	}
	return out
}

// jsonName is what a field is called in JSON; embedded tells that its own fields stand in its place.
func jsonName(f reflect.StructField) (name string, embedded bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, f.Anonymous && name == ""
}
