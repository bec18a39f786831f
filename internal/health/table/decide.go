package table

import (
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

const (
	unseen    = "its controller has not seen the last change yet"
	unstarted = "its controller has not reported yet"
	unready   = "it is not ready yet"
)

// decide is the health of an object; false when it has none.
func (e *entry) decide(f field.Map) (v1alpha1.HealthStatus, bool) {
	if e.behind(f) {
		return v1alpha1.HealthStatus{Status: v1alpha1.HealthProgressing, Message: unseen}, true
	}
	for i := range e.Rules {
		what, ok := e.Rules[i].holds(f, e.conditions)
		switch {
		case !ok:
			continue
		case e.Generation != "none" && f.Outdated(what.condition):
			return v1alpha1.HealthStatus{Status: v1alpha1.HealthProgressing, Message: unseen}, true
		}
		return e.say(f, e.Rules[i].outcome, what)
	}
	if e.Otherwise.Health != "" {
		return e.say(f, e.Otherwise, found{})
	}
	message := unready
	if len(f.At("status")) == 0 {
		message = unstarted
	}
	return v1alpha1.HealthStatus{Status: v1alpha1.HealthProgressing, Message: message}, true
}

// behind tells whether the status belongs to an older generation than the object.
func (e *entry) behind(f field.Map) bool {
	if e.generation == nil {
		return false
	}
	values := e.generation.values(f)
	if len(values) == 0 {
		return e.Reported
	}
	seen, ok := numberOf(values[0])
	return ok && seen < f.Count("metadata", "generation")
}

// holds tells whether all clauses of a rule hold, with the first condition or field that they found.
func (r *rule) holds(f field.Map, conditions path) (found, bool) {
	var first found
	for i := range r.When {
		what, ok := r.When[i].holds(f, conditions)
		if !ok {
			return found{}, false
		}
		if first.condition == nil && first.field == "" {
			first = what
		}
	}
	return first, true
}

// say puts an outcome in words.
func (e *entry) say(f field.Map, o outcome, what found) (v1alpha1.HealthStatus, bool) {
	if o.Health == none {
		return v1alpha1.HealthStatus{}, false
	}
	health := v1alpha1.HealthStatus{Status: v1alpha1.HealthStatusCode(o.Health)}
	switch {
	case o.Message != "":
		health.Message = fill(o.Message, f, what.condition)
	case health.Status == v1alpha1.HealthHealthy:
	case what.condition != nil:
		health.Message = steady.Condition(what.condition)
	case what.field != "":
		health.Message = e.fieldSentence(f, what)
	}
	return health, true
}

// fieldSentence is a field in words: phase is Failed: no space left.
func (e *entry) fieldSentence(f field.Map, what found) string {
	sentence := what.field
	if value := steady.Message(what.value); value != "" {
		sentence += " is " + value
	}
	if detail := steady.Message(firstText(e.detail.valuesOrNone(f))); detail != "" {
		sentence += ": " + detail
	}
	return sentence
}

func (p path) valuesOrNone(f field.Map) []any {
	if p == nil {
		return nil
	}
	return p.values(f)
}

// fill puts fields into a message. What is empty leaves no colon behind.
func fill(message string, f, condition field.Map) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(message, "{")
		b.WriteString(before)
		if !ok {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		b.WriteString(placeholder(name, f, condition))
		message = after
	}
	return strings.TrimRight(b.String(), ": ")
}

func placeholder(name string, f, condition field.Map) string {
	if name == "condition" {
		return steady.Condition(condition)
	}
	if part, ok := strings.CutPrefix(name, "condition."); ok {
		return steady.Message(condition.Text(part))
	}
	p, _ := parsePath(name) // the table was checked when it was read
	return steady.Message(firstText(p.values(f)))
}
