package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Misfit finds the field of an Application, given as it was read from the API server, whose value has not the type of the
// field: a definition installed by others may let more through than ours. Nil when everything fits.
func Misfit(object map[string]any) error {
	t := reflect.TypeFor[v1alpha1.Application]()
	for i := range t.NumField() {
		name, embedded := jsonName(t.Field(i))
		value, there := object[name]
		if embedded || !there || name == "metadata" {
			continue
		}
		if err := misfit(name, value, t.Field(i).Type); err != nil {
			return err
		}
	}
	return nil
}

// misfit descends to the smallest part that can not be read.
func misfit(path string, value any, t reflect.Type) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	err = json.Unmarshal(text, reflect.New(t).Interface())
	if err == nil {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at, inner := path+"."+key, fieldOf(t, key)
			if t.Kind() == reflect.Map {
				at, inner = path+"["+key+"]", t.Elem()
			}
			if inner == nil {
				continue
			}
			if err := misfit(at, v[key], inner); err != nil {
				return err
			}
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for i := range v {
				if err := misfit(fmt.Sprintf("%s[%d]", path, i), v[i], t.Elem()); err != nil {
					return err
				}
			}
		}
	}
	return fmt.Errorf("%s: %w", path, wanted(t, text, err))
}

// fieldOf is the type of a field of a struct by its name in JSON; nil when there is none.
func fieldOf(t reflect.Type, name string) reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		field, embedded := jsonName(t.Field(i))
		if embedded {
			if inner := fieldOf(t.Field(i).Type, name); inner != nil {
				return inner
			}
		} else if field == name {
			return t.Field(i).Type
		}
	}
	return nil
}

// wanted says what stands there and what should.
func wanted(t reflect.Type, text []byte, err error) error {
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return fmt.Errorf("can't be read: %w", err)
	}
	is := map[byte]string{'{': "a mapping", '[': "a list", '"': "text", 't': "a boolean", 'f': "a boolean"}[bytes.TrimSpace(text)[0]]
	if is == "" {
		is = "a number"
	}
	return fmt.Errorf("is %s; %s is expected", is, kindName(t))
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return t.String()
}
