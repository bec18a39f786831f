package table

import (
	"strings"
	"testing"
)

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no YAML", "- {", "own.yaml: no valid YAML"},
		{"no list", "project: a", "own.yaml:1: a table is a list of entries"},
		{"unknown key", "- {project: a, kinds: [A.b], sources: x, otherwise: {health: Healthy}}", "field sources not found"},
		{"unknown key in a clause", "- kinds: [A.b]\n  rules:\n    - {when: [{condition: Ready, state: x}], health: Healthy}", "line 3: field state not found"},
		{"no kinds", "- {project: a}", "own.yaml:1: the entry names no kinds"},
		{"kind without group", "- {kinds: [Pod], otherwise: {health: Healthy}}", `own.yaml:1: kind "Pod" has no group`},
		{"nothing said", "\n\n- {kinds: [A.b]}", "own.yaml:3: the entry says nothing"},
		{"empty entry", "-\n", "own.yaml:1: the entry is empty"},
		{"no such health", "- kinds: [A.b]\n  rules:\n    - {when: [{condition: Ready}], health: Good}", `own.yaml:3: health "Good" is none of Healthy, Progressing`},
		{"no such otherwise", "- {kinds: [A.b], otherwise: {health: x}}", `otherwise: health "x" is none of`},
		{"no when", "- kinds: [A.b]\n  rules:\n    - {when: [{condition: Ready}], health: Healthy}\n    - {health: Healthy}", "own.yaml:4: the rule has no when"},
		{"condition and field", "- kinds: [A.b]\n  rules:\n    - {when: [{condition: Ready, field: x}], health: Healthy}", "own.yaml:3: a clause names a condition or a field, and not both"},
		{"neither", "- kinds: [A.b]\n  rules:\n    - {when: [{status: x}], health: Healthy}", "a clause names a condition or a field"},
		{"field compared twice", "- kinds: [A.b]\n  rules:\n    - {when: [{field: x, is: a, exists: true}], health: Healthy}", "says 2 things"},
		{"field with a status", "- kinds: [A.b]\n  rules:\n    - {when: [{field: x, is: a, status: b}], health: Healthy}", "asks for a condition"},
		{"condition compared", "- kinds: [A.b]\n  rules:\n    - {when: [{condition: Ready, is: a}], health: Healthy}", "compares a field"},
		{"open bracket", "- kinds: [A.b]\n  rules:\n    - {when: [{field: 'a[b', is: a}], health: Healthy}", `path "a[b": a bracket is not closed`},
		{"empty name", "- kinds: [A.b]\n  conditions: a..b\n  otherwise: {health: Healthy}", `path "a..b": a name is empty`},
		{"open brace", "- {kinds: [A.b], otherwise: {health: Healthy, message: 'a {b'}}", "a brace is not closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("own.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
	if table, err := Parse("own.yaml", nil); err != nil || len(table.entries) != 0 {
		t.Errorf("an empty file: %v, %v", table, err)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"*", "a.b", true}, {"a", "a", true}, {"a", "ab", false}, {"*.b", "a.b", true}, {"*.b", "b", false},
		{"a*c*e", "abcde", true}, {"a*c*e", "abde", false}, {"*crossplane.io", "Bucket.s3.aws.crossplane.io", true}, {"ab*ba", "aba", false},
	} {
		if got := glob(c.pattern, c.text); got != c.want {
			t.Errorf("%s on %q: %v", c.pattern, c.text, got)
		}
	}
}
