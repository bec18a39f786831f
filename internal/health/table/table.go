// Package table owns the health of custom resources as a list of rules: a YAML file says for a kind which conditions and
// fields mean what, with the document that says so. The rules of the projects that people run are built in; people can
// write their own in the same form (docs/health.md).
//
// It is pure: it imports the reading of fields and the steady sentences, and knows nothing of the kinds of Kubernetes itself.
package table

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// Table is a parsed list of entries. It is read only, so that many may ask at once.
type Table struct {
	entries []*entry
	// exact are the entries that name a kind without a wildcard, globs all that name one with.
	exact map[string][]*entry
	globs []wild
}

// wild is a name of kinds with a wildcard, and what is said of them.
type wild struct {
	pattern string
	entry   *entry
}

// entry is what is said of some kinds. It is the form of the file, docs/health.md describes it.
type entry struct {
	// Project is whose kinds these are.
	Project string `yaml:"project"`
	// Source is the document, or the type in the project's API, that the rules are taken from.
	Source string `yaml:"source"`
	// Kinds are of the form Kind.group; a * stands for any characters.
	Kinds words `yaml:"kinds"`
	// Versions limits the entry to some versions of the API; all when it is empty.
	Versions words `yaml:"versions"`
	// Where limits the entry to objects of which all clauses hold: for kinds that have no fixed name.
	Where []clause `yaml:"where"`
	// Conditions is the path of the conditions; status.conditions when it is empty.
	Conditions string `yaml:"conditions"`
	// Generation is the path of the generation that the status belongs to: status.observedGeneration when it is empty,
	// not looked at when it is "none".
	Generation string `yaml:"generation"`
	// Reported tells that the controller always writes the generation, so that a status without it is none.
	Reported bool `yaml:"reported"`
	// Detail is the path of a text that is added to sentences made from a field.
	Detail string `yaml:"detail"`
	// Rules are tried in order; the first whose clauses all hold decides.
	Rules []rule `yaml:"rules"`
	// Otherwise is what no rule decides; Progressing when it is empty.
	Otherwise outcome `yaml:"otherwise"`

	line                           int
	conditions, generation, detail path
}

// rule is one line of an entry.
type rule struct {
	When    []clause `yaml:"when"`
	outcome `yaml:",inline"`
}

// outcome is a health and its sentence.
type outcome struct {
	Health string `yaml:"health"`
	// Message may hold {path} for a field, and {condition}, {condition.message} and {condition.reason} for the condition of
	// the rule. Empty: the condition or the field in words, nothing for Healthy.
	Message string `yaml:"message"`
}

// none is the outcome of kinds that have no health.
const none = "None"

// Of is the health that the table gives to an object; known is false when it does not know the kind, has is false when it
// knows that objects of the kind have none.
func (t *Table) Of(kind schema.GroupVersionKind, f field.Map) (health v1alpha1.HealthStatus, has, known bool) {
	e := t.find(kind, f)
	if e == nil {
		return v1alpha1.HealthStatus{}, false, false
	}
	health, has = e.decide(f)
	return health, has, true
}

// find is the entry of a kind: one that names it wins over one that has a wildcard, and an earlier over a later.
func (t *Table) find(kind schema.GroupVersionKind, f field.Map) *entry {
	name := kind.Kind + "." + kind.Group
	for _, e := range t.exact[name] {
		if e.fits(kind.Version, f) {
			return e
		}
	}
	for _, w := range t.globs {
		if glob(w.pattern, name) && w.entry.fits(kind.Version, f) {
			return w.entry
		}
	}
	return nil
}

// fits tells whether the entry is about an object of one of its kinds.
func (e *entry) fits(version string, f field.Map) bool {
	if !e.Versions.match(version) {
		return false
	}
	for i := range e.Where {
		if _, ok := e.Where[i].holds(f, e.conditions); !ok {
			return false
		}
	}
	return true
}

// newTable files the entries by kind.
func newTable(entries []*entry) *Table {
	t := &Table{entries: entries, exact: map[string][]*entry{}}
	for _, e := range entries {
		for _, kind := range e.Kinds {
			if strings.Contains(kind, "*") {
				t.globs = append(t.globs, wild{kind, e})
			} else {
				t.exact[kind] = append(t.exact[kind], e)
			}
		}
	}
	return t
}

// glob tells whether a text has the form of a pattern, in which * stands for any characters.
func glob(pattern, text string) bool {
	head, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, head)
	for ok {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if ok = at >= 0; ok {
			text, rest = text[at+len(part):], next
		}
	}
	return false
}
