package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// outcomes are the health that a rule may give.
func outcomes() []string {
	return []string{"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown", none}
}

// Parse reads a table in the form of docs/health.md. An error names the file, the line and what to write instead.
func Parse(name string, text []byte) (*Table, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: no valid YAML: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return newTable(nil), nil
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%s:%d: a table is a list of entries; write each as - project: NAME", name, list.Line)
	}
	var entries []*entry
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&entries); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, e := range entries {
		at := list.Content[i]
		if e == nil {
			return nil, fmt.Errorf("%s:%d: the entry is empty; write kinds and rules or remove it", name, at.Line)
		}
		e.line = at.Line
		if line, err := e.compile(at); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	return newTable(entries), nil
}

// UnmarshalYAML takes one text or a list of them. Words that YAML reads as something else, such as True, stay as written.
func (w *words) UnmarshalYAML(node *yaml.Node) error {
	list := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		list = node.Content
	}
	for _, n := range list {
		if n.Kind != yaml.ScalarNode || n.Value == "" {
			return fmt.Errorf("line %d: a text or a list of texts is wanted here", n.Line)
		}
		*w = append(*w, n.Value)
	}
	return nil
}

// compile checks an entry and prepares its paths; the line is where it is wrong.
func (e *entry) compile(at *yaml.Node) (int, error) {
	if len(e.Kinds) == 0 {
		return e.line, errors.New("the entry names no kinds; write kinds: [Kind.group]")
	}
	for _, kind := range e.Kinds {
		if kind != "*" && !strings.Contains(kind, ".") {
			return e.line, fmt.Errorf("kind %q has no group; write Kind.group", kind)
		}
	}
	if e.Conditions == "" {
		e.Conditions = "status.conditions"
	}
	if e.Generation == "" {
		e.Generation = "status.observedGeneration"
	}
	var errs [3]error
	e.conditions, errs[0] = parsePath(e.Conditions)
	e.detail, errs[1] = parsePath(e.Detail)
	if e.Generation != "none" {
		e.generation, errs[2] = parsePath(e.Generation)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return e.line, err
	}
	for i := range e.Where {
		if err := e.Where[i].compile(); err != nil {
			return e.line, fmt.Errorf("where: %w", err)
		}
	}
	if e.Otherwise != (outcome{}) {
		if err := e.Otherwise.check(); err != nil {
			return e.line, fmt.Errorf("otherwise: %w", err)
		}
	}
	return e.compileRules(child(at, "rules"))
}

func (e *entry) compileRules(at *yaml.Node) (int, error) {
	if len(e.Rules) == 0 && e.Otherwise.Health == "" {
		return e.line, errors.New("the entry says nothing; write rules or otherwise")
	}
	for i := range e.Rules {
		r := &e.Rules[i]
		line := at.Content[i].Line
		if len(r.When) == 0 {
			return line, errors.New("the rule has no when; what holds always is written as otherwise")
		}
		if err := r.check(); err != nil {
			return line, err
		}
		for j := range r.When {
			if err := r.When[j].compile(); err != nil {
				return line, err
			}
		}
	}
	return 0, nil
}

// check tells whether the health is one, and whether the message can be filled.
func (o *outcome) check() error {
	known := false
	for _, name := range outcomes() {
		known = known || o.Health == name
	}
	if !known {
		return fmt.Errorf("health %q is none of %s", o.Health, strings.Join(outcomes(), ", "))
	}
	for rest := o.Message; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			return nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || name == "" {
			return fmt.Errorf("message %q: a brace is not closed, or names nothing", o.Message)
		}
		if _, err := parsePath(name); err != nil {
			return fmt.Errorf("message %q: %w", o.Message, err)
		}
		rest = tail
	}
}

// compile checks a clause: it is about a condition or about a field, and says one thing of it.
func (c *clause) compile() error {
	switch {
	case (len(c.Condition) == 0) == (c.Field == ""):
		return errors.New("a clause names a condition or a field, and not both")
	case c.Field == "" && (len(c.Is)+len(c.Not) > 0 || c.Exists != nil || c.compares()):
		return fmt.Errorf("the clause of condition %s compares a field; write status, reason, severity and message", strings.Join(c.Condition, ", "))
	case c.Field != "" && (len(c.Status)+len(c.Reason)+len(c.Severity)+len(c.Message) > 0 || c.Absent):
		return fmt.Errorf("the clause of field %s asks for a condition; write is, not, exists, below, atLeast or equals", c.Field)
	case c.Field != "" && c.says() != 1:
		return fmt.Errorf("the clause of field %s says %d things; one of is, not, exists, below, atLeast and equals is wanted", c.Field, c.says())
	}
	var err error
	if c.Conditions != "" {
		if c.conditions, err = parsePath(c.Conditions); err != nil {
			return err
		}
	}
	if c.path, err = parsePath(c.Field); err != nil {
		return err
	}
	operand := c.Below + c.AtLeast + c.Equals
	if operand == "" {
		return nil
	}
	if c.number, err = strconv.ParseInt(operand, 10, 64); err != nil {
		c.other, err = parsePath(operand)
	}
	return err
}

// says counts what a clause says of its field.
func (c *clause) says() int {
	n := 0
	for _, said := range []bool{len(c.Is) > 0, len(c.Not) > 0, c.Exists != nil, c.Below != "", c.AtLeast != "", c.Equals != ""} {
		if said {
			n++
		}
	}
	return n
}

// child is the value of a key of a mapping; nil when it is not there.
func child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != key {
			continue
		}
		if value := node.Content[i+1]; value.Kind == yaml.AliasNode {
			return value.Alias
		}
		return node.Content[i+1]
	}
	return nil
}
