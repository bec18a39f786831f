package table

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/lockstep-cd/lockstep/internal/field"
)

// clause is one thing that must hold of an object: of a condition, or of a field.
type clause struct {
	// Condition is the type of the condition, or several; * stands for any characters. With several that fit, one has to.
	Condition words `yaml:"condition"`
	// Status, Reason, Severity and Message are what the condition must say; anything when they are empty.
	Status   words `yaml:"status"`
	Reason   words `yaml:"reason"`
	Severity words `yaml:"severity"`
	Message  words `yaml:"message"`
	// Conditions is the path of the conditions, where it is not that of the entry.
	Conditions string `yaml:"conditions"`
	// Absent turns the clause round: no condition is like that.
	Absent bool `yaml:"absent"`

	// Field is the path of a field. With several values, one has to fit.
	Field string `yaml:"field"`
	// Is and Not are what the value must be, and must not be; * stands for any characters. A missing field is neither.
	Is  words `yaml:"is"`
	Not words `yaml:"not"`
	// Exists tells whether there must be a value that is not empty, or must be none.
	Exists *bool `yaml:"exists"`
	// Below, AtLeast and Equals compare with a number, or with the field at a path. A missing field counts as 0.
	Below   string `yaml:"below"`
	AtLeast string `yaml:"atLeast"`
	Equals  string `yaml:"equals"`
	// Unset is the number that the other field counts as when it is missing.
	Unset int64 `yaml:"unset"`

	conditions, path, other path
	number                  int64
}

// words are one text or a list of them.
type words []string

func (w words) match(text string) bool {
	return len(w) == 0 || slices.ContainsFunc(w, func(pattern string) bool { return glob(pattern, text) })
}

// found is what a clause found when it held: a condition, or the value of a field.
type found struct {
	condition field.Map
	field     string
	value     string
}

// holds tells whether the clause holds of an object, and what it found.
func (c *clause) holds(f field.Map, conditions path) (found, bool) {
	if len(c.Condition) > 0 {
		if c.conditions != nil {
			conditions = c.conditions
		}
		return c.conditionHolds(conditions.maps(f))
	}
	values := c.path.values(f)
	switch {
	case c.Exists != nil:
		filled := slices.ContainsFunc(values, func(v any) bool { return !empty(v) })
		return found{field: c.path.last(), value: firstText(values)}, filled == *c.Exists
	case c.compares():
		return found{}, c.compare(f, values)
	}
	for _, value := range values {
		text := textOf(value)
		if len(c.Is) > 0 && !c.Is.match(text) || len(c.Not) > 0 && c.Not.match(text) {
			continue
		}
		return found{field: c.path.last(), value: text}, true
	}
	return found{}, false
}

func (c *clause) conditionHolds(conditions []field.Map) (found, bool) {
	for _, condition := range conditions {
		if c.Condition.match(condition.Text("type")) && c.Status.match(textOf(condition["status"])) &&
			c.Reason.match(condition.Text("reason")) && c.Severity.match(condition.Text("severity")) &&
			c.Message.match(condition.Text("message")) {
			return found{condition: condition}, !c.Absent
		}
	}
	return found{}, c.Absent
}

func (c *clause) compares() bool { return c.Below != "" || c.AtLeast != "" || c.Equals != "" }

func (c *clause) compare(f field.Map, values []any) bool {
	left, right := int64(0), c.number
	if len(values) > 0 {
		left, _ = numberOf(values[0])
	}
	if c.other != nil {
		right = c.Unset
		if others := c.other.values(f); len(others) > 0 {
			right, _ = numberOf(others[0])
		}
	}
	switch {
	case c.Below != "":
		return left < right
	case c.AtLeast != "":
		return left >= right
	}
	return left == right
}

// numberOf reads a number, also where it is written as text: some controllers write the generation so.
func numberOf(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool, int64, int:
		return fmt.Sprint(v)
	}
	return ""
}

// firstText is the first text among values, and the lists among them.
func firstText(values []any) string {
	for _, value := range values {
		if text := textOf(value); text != "" {
			return text
		}
		if list, ok := value.([]any); ok {
			if text := firstText(list); text != "" {
				return text
			}
		}
	}
	return ""
}
