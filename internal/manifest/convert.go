package manifest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// converter makes what the YAML decoder gives into the values that Kubernetes' JSON decoder would give for the same
// object: string keys, int64 where a number is whole and fits, else float64.
type converter struct {
	// budget is what the value may still grow to. Aliases make a small text large.
	budget   int
	maxDepth int
}

var errTooLarge = errors.New("grows too large once its aliases are expanded")

func (c *converter) value(v any, depth int) (any, error) {
	if depth > c.maxDepth {
		return nil, fmt.Errorf("is nested more than %d levels deep", c.maxDepth)
	}
	if c.budget--; c.budget < 0 {
		return nil, errTooLarge
	}
	switch v := v.(type) {
	case map[any]any:
		return c.mapping(v, depth)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			var err error
			if out[i], err = c.value(item, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		return c.text(v)
	case int:
		return int64(v), nil
	case uint64:
		return wholeOrFloat(float64(v)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("number %v has no place in a Kubernetes object", v)
		}
		return wholeOrFloat(v), nil
	case time.Time: // only with an explicit !!timestamp
		return v.Format(time.RFC3339Nano), nil
	}
	return v, nil
}

func (c *converter) mapping(m map[any]any, depth int) (any, error) {
	out := make(map[string]any, len(m))
	for k, v := range m {
		key, err := keyText(k)
		if err != nil {
			return nil, err
		}
		if key, err = c.text(key); err != nil {
			return nil, err
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("key %q stands twice in one mapping, as text and as another type", key)
		}
		if out[key], err = c.value(v, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *converter) text(s string) (string, error) {
	if c.budget -= len(s); c.budget < 0 {
		return "", errTooLarge
	}
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // a !!binary value: one replacement character for each byte, as encoding/json does
	}
	return s, nil
}

// keyText is the text of a key that is a number or a truth value, in the spelling of sigs.k8s.io/yaml.
func keyText(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		switch s := strconv.FormatFloat(k, 'g', -1, 32); s {
		case "+Inf":
			return ".inf", nil
		case "-Inf":
			return "-.inf", nil
		case "NaN":
			return ".nan", nil
		default:
			return s, nil
		}
	case nil:
		return "", errors.New("a key is empty or null")
	}
	return "", fmt.Errorf("key %v is not text", k)
}

// wholeOrFloat is f as it comes back from JSON, where 1.0 is written 1: int64 where the written number is one.
func wholeOrFloat(f float64) any {
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return f
}
