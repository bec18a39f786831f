package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Rules are an application's spec.ignoreDifferences, checked and compiled. Safe for use by several goroutines; nil holds
// no rule.
type Rules struct {
	list []rule
}

// rule is one entry of spec.ignoreDifferences.
type rule struct {
	group, kind     glob.Glob
	name, namespace glob.Glob // nil matches everything
	pointers        [][]string
	queries         []query
	managers        []string
}

// ParseRules checks and compiles the rules. An error names the field at fault as spec.ignoreDifferences[0].jsonPointers[1]
// and says what is wrong with it.
func ParseRules(list []v1alpha1.ResourceIgnoreDifferences) (*Rules, error) {
	out := &Rules{}
	for i, entry := range list {
		r, err := parseRule(entry)
		if err != nil {
			return nil, fmt.Errorf("spec.ignoreDifferences[%d].%w", i, err)
		}
		for q := range r.queries {
			r.queries[q].place = fmt.Sprintf("spec.ignoreDifferences[%d].%s", i, r.queries[q].place)
		}
		out.list = append(out.list, r)
	}
	return out, nil
}

func parseRule(entry v1alpha1.ResourceIgnoreDifferences) (rule, error) {
	r := rule{managers: entry.ManagedFieldsManagers}
	if entry.Kind == "" {
		return r, errors.New(`kind: is missing; name a kind, or "*" for every kind`)
	}
	var err error
	if r.group, err = pattern("group", entry.Group); err != nil {
		return r, err
	}
	if r.kind, err = pattern("kind", entry.Kind); err != nil {
		return r, err
	}
	if entry.Name != "" {
		if r.name, err = pattern("name", entry.Name); err != nil {
			return r, err
		}
	}
	if entry.Namespace != "" {
		if r.namespace, err = pattern("namespace", entry.Namespace); err != nil {
			return r, err
		}
	}
	for i, text := range entry.JSONPointers {
		tokens, err := parsePointer(text)
		if err != nil {
			return r, fmt.Errorf("jsonPointers[%d]: %w", i, err)
		}
		r.pointers = append(r.pointers, tokens)
	}
	for i, text := range entry.JQPathExpressions {
		q, err := parseQuery(text)
		if err != nil {
			return r, fmt.Errorf("jqPathExpressions[%d]: %w", i, err)
		}
		q.place = fmt.Sprintf("jqPathExpressions[%d]", i)
		r.queries = append(r.queries, q)
	}
	return r, nil
}

func pattern(field, text string) (glob.Glob, error) {
	g, err := glob.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is no pattern: %w", field, text, err)
	}
	return g, nil
}

// parsePointer reads a JSON pointer (RFC 6901).
func parsePointer(text string) ([]string, error) {
	if text == "" {
		return nil, errors.New("is empty, which names the whole object; name a field, such as /spec/replicas")
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("%q is no JSON pointer: it begins with a slash, such as /spec/replicas", text)
	}
	tokens := strings.Split(text[1:], "/")
	for i, t := range tokens {
		for rest := t; ; {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				break
			}
			if !strings.HasPrefix(after, "0") && !strings.HasPrefix(after, "1") {
				return nil, fmt.Errorf("%q is no JSON pointer: ~ is written ~0, and / in a name ~1", text)
			}
			rest = after
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// Ignore are the rules that match one object. The zero value ignores nothing.
type Ignore struct {
	rules []rule
}

// For picks the rules that match the object: group and kind by their patterns, name and namespace where the rule has them.
func (r *Rules) For(k manifest.Key) Ignore {
	var out Ignore
	if r == nil {
		return out
	}
	for _, one := range r.list {
		if one.group.Match(k.Group) && one.kind.Match(k.Kind) && (one.name == nil || one.name.Match(k.Name)) &&
			(one.namespace == nil || one.namespace.Match(k.Namespace)) {
			out.rules = append(out.rules, one)
		}
	}
	return out
}

// Empty tells that no rule matches the object.
func (i Ignore) Empty() bool { return len(i.rules) == 0 }

// dynamic tells that what is ignored depends on more than the path: on values, or on who owns a field.
func (i Ignore) dynamic() bool {
	return slices.ContainsFunc(i.rules, func(r rule) bool { return len(r.queries) > 0 || len(r.managers) > 0 })
}

// cutOf finds the places in object that the rules name. Owners are read from live, whichever side object is.
func (i Ignore) cutOf(ctx context.Context, object map[string]any, live *unstructured.Unstructured) (*cut, error) {
	c := &cut{}
	var input any // made when the first expression needs it
	for _, r := range i.rules {
		for _, tokens := range r.pointers {
			c.pointer(object, tokens)
		}
		for _, q := range r.queries {
			if input == nil {
				input = plain(object)
			}
			paths, err := q.run(ctx, input)
			if err != nil {
				return nil, err
			}
			for _, p := range paths {
				c.path(object, p)
			}
		}
		if err := c.managers(object, live, r.managers); err != nil {
			return nil, err
		}
	}
	return c, nil
}
