package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzSplit: the documents that are cut out hold the values that the decoder finds in the whole stream, and all of its text.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"a: 1\n---\nb: 2\n", "--- # c\na\n...\n# x\n---\n", "%YAML 1.1\n---\na: 1\n", "a: |\n  ---\n  b\n---\nc\n", "--- |\n x\n---\n",
		"- a\n---\n- b\n...\n- c\n", "a\r\n---\r\nb\r\n", "%TAG ! tag:x,2000:\n---\n!a b\n...\n%YAML 1.1\n---\nc\n", "---\n---\n---", "'a\n ---\n b'\n", "...\n...\n", "0\n...\n...", "0\n---\n# c\n...\n...\n1\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		documents := splitDocuments(text)
		joined, line := []byte{}, 1
		for _, d := range documents {
			if d.line < line || d.content < d.line {
				t.Fatalf("document at line %d with content at %d, after line %d", d.line, d.content, line)
			}
			line = d.line
			joined = append(joined, d.text...)
		}
		want, err := decodeYAML(text, false)
		if err != nil || len(joined) != len(text) { // a mark in the middle was taken out
			return
		}
		var got []any
		for _, d := range documents {
			values, err := decodeYAML(d.text, false)
			if err != nil {
				t.Fatalf("document at line %d of %q: %v", d.line, text, err)
			}
			got = append(got, values...)
		}
		if diff := cmp.Diff(withoutNil(want), withoutNil(got), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}

// withoutNil leaves out empty documents: whether a marker alone makes one does not matter.
func withoutNil(values []any) []any {
	var out []any
	for _, v := range values {
		if v != nil {
			out = append(out, v)
		}
	}
	return out
}
