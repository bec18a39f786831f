package table

import (
	"fmt"
	"io"
	"strings"
)

// words are a rule as docs/health.md shows it.
func (r *rule) words() string {
	parts := make([]string, len(r.When))
	for i := range r.When {
		parts[i] = r.When[i].words()
	}
	return strings.Join(parts, " and ") + " → " + r.Health
}

func (c *clause) words() string {
	if len(c.Condition) > 0 {
		return c.conditionWords()
	}
	name := "`" + c.Field + "`"
	switch {
	case len(c.Is) == 1 && c.Is[0] == "*":
		return name + " is anything else"
	case len(c.Is) > 0:
		return name + " is " + either(c.Is)
	case len(c.Not) > 0:
		return name + " is not " + either(c.Not)
	case c.Exists != nil && *c.Exists:
		return name + " is there"
	case c.Exists != nil:
		return name + " is not there"
	case c.Below != "":
		return name + " < `" + c.Below + "`"
	case c.AtLeast != "":
		return name + " ≥ `" + c.AtLeast + "`"
	}
	return name + " = `" + c.Equals + "`"
}

func (c *clause) conditionWords() string {
	text := either(c.Condition)
	if c.Absent {
		text = "no " + text
	}
	if len(c.Status) > 0 {
		text += " " + strings.Join(c.Status, "/")
	}
	for _, part := range []struct {
		name  string
		words words
	}{{"reason", c.Reason}, {"severity", c.Severity}, {"message", c.Message}} {
		if len(part.words) > 0 {
			text += " (" + part.name + " " + either(part.words) + ")"
		}
	}
	if c.Conditions != "" {
		text += " in `" + c.Conditions + "`"
	}
	return text
}

func either(w words) string {
	quoted := make([]string, len(w))
	for i, text := range w {
		quoted[i] = "`" + text + "`"
	}
	return strings.Join(quoted, " or ")
}

// Describe writes the table for people: for each project its kinds, their rules in the order in which they are tried, and
// where they come from.
func (t *Table) Describe(w io.Writer) {
	project := ""
	for _, e := range t.entries {
		if e.Project != project {
			project = e.Project
			fmt.Fprintf(w, "\n### %s\n", project)
		}
		fmt.Fprintf(w, "\n%s  \n", either(e.Kinds))
		fmt.Fprintf(w, "Source: %s\n\n", e.Source)
		for i := range e.Where {
			fmt.Fprintf(w, "- only where %s\n", e.Where[i].words())
		}
		for i := range e.Rules {
			fmt.Fprintf(w, "- %s\n", e.Rules[i].words())
		}
		otherwise := e.Otherwise.Health
		if otherwise == "" {
			otherwise = "Progressing"
		}
		fmt.Fprintf(w, "- otherwise → %s\n", otherwise)
	}
}
