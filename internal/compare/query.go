package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/itchyny/gojq"
)

// Bounds of one jq expression on one object: a person who may write an Application must not hold up the others.
const (
	queryTime  = time.Second
	queryPaths = 10_000
	queryText  = 8 << 10 // bytes
)

// query is a compiled jq path expression.
type query struct {
	// place is the field of the spec that it stands in.
	place string
	code  *gojq.Code
}

// parseQuery compiles the expression so that it answers paths and not values. It sees no environment, no files and no
// other input than the object.
func parseQuery(text string) (query, error) {
	if len(text) > queryText {
		return query{}, fmt.Errorf("is %d bytes long; at most %d are read", len(text), queryText)
	}
	if _, err := gojq.Parse(text); err != nil { // by itself, so that positions in the error are the author's
		return query{}, fmt.Errorf("%q is no jq expression: %w", text, err)
	}
	parsed, err := gojq.Parse("path(" + text + "\n)")
	if err != nil {
		return query{}, fmt.Errorf("%q is no jq path expression: %w", text, err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return query{}, fmt.Errorf("%q is no jq path expression: %w", text, err)
	}
	return query{code: code}, nil
}

// run answers the paths of input that the expression names. An expression that does not fit the object, such as one that
// iterates over a field that is not there, names nothing from there on; one that takes too long or names too much is an
// error.
func (q query) run(ctx context.Context, input any) ([][]any, error) {
	bounded, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	var out [][]any
	for iter := q.code.RunWithContext(bounded, input); ; {
		v, more := iter.Next()
		if !more {
			return out, nil
		}
		if _, failed := v.(error); failed {
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case bounded.Err() != nil:
				return nil, fmt.Errorf("%s: takes longer than %s; make the expression simpler", q.place, queryTime)
			}
			return out, nil
		}
		if path, ok := v.([]any); ok && len(path) > 0 {
			out = append(out, path)
		}
		if len(out) > queryPaths {
			return nil, fmt.Errorf("%s: names more than %d fields; name what contains them", q.place, queryPaths)
		}
		if bounded.Err() != nil && ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("%s: takes longer than %s; make the expression simpler", q.place, queryTime)
		}
	}
}

// plain copies a value into the types that jq knows.
func plain(v any) any {
	switch n := v.(type) {
	case int64:
		if n >= math.MinInt && n <= math.MaxInt {
			return int(n)
		}
		return float64(n)
	case float64, int, string, bool, nil:
		return v
	case map[string]any:
		out := make(map[string]any, len(n))
		for k, item := range n {
			out[k] = plain(item)
		}
		return out
	case []any:
		out := make([]any, len(n))
		for i, item := range n {
			out[i] = plain(item)
		}
		return out
	}
	return fmt.Sprint(v) // unstructured objects hold no other types
}
