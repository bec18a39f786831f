package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestMerge(t *testing.T) {
	tests := []struct {
		name               string
		theirs, ours, want string // want empty: theirs stays as it is
		diff               Difference
	}{{
		name:   "equal but for descriptions",
		theirs: `{type: object, description: x, properties: {a: {type: string}}}`,
		ours:   `{type: object, description: y, properties: {a: {type: string, description: z}}}`,
	}, {
		name:   "a field is missing",
		theirs: `{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}`,
		ours:   `{type: object, properties: {a: {type: object, properties: {b: {type: string}, c: {type: integer}}}}}`,
		want:   `{type: object, properties: {a: {type: object, properties: {b: {type: string}, c: {type: integer}}}}}`,
		diff:   Difference{Missing: []string{"a.c"}},
	}, {
		name:   "each has a field of its own",
		theirs: `{type: object, properties: {a: {type: string}}}`,
		ours:   `{type: object, properties: {b: {type: string}}}`,
		want:   `{type: object, properties: {a: {type: string}, b: {type: string}}}`,
		diff:   Difference{Missing: []string{"b"}, Extra: []string{"a"}},
	}, {
		name:   "theirs has more",
		theirs: `{type: object, properties: {a: {type: string}, b: {type: string}}}`,
		ours:   `{type: object, properties: {a: {type: string}}}`,
		diff:   Difference{Extra: []string{"b"}},
	}, {
		name:   "inside lists and maps",
		theirs: `{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}, m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}}}`,
		ours:   `{type: object, properties: {l: {type: array, items: {type: object, properties: {b: {type: string}}}}, m: {type: object, additionalProperties: {type: object, properties: {z: {type: string}}}}}}`,
		want:   `{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}, m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, z: {type: string}}}}}}`,
		diff:   Difference{Missing: []string{"l[].b", "m{}.z"}, Extra: []string{"l[].a", "m{}.x"}},
	}, {
		name:   "theirs keeps what it does not know",
		theirs: `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}`,
		ours:   `{type: object, properties: {a: {type: string}, b: {type: string}}}`,
	}, {
		name:   "ours keeps what it does not know",
		theirs: `{type: object, properties: {v: {type: object, properties: {a: {type: string}}}}}`,
		ours:   `{type: object, properties: {v: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`,
		want:   `{type: object, properties: {v: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}}}`,
		diff:   Difference{Narrower: []string{"v"}},
	}, {
		name:   "other types",
		theirs: `{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: integer}}}`,
		ours:   `{type: object, properties: {a: {type: object}, b: {type: integer}, c: {type: boolean}}}`,
		diff: Difference{Conflicts: []string{
			"a: string in the cluster, object in ours", "b: string in the cluster, integer in ours", "c: integer in the cluster, boolean in ours",
		}},
	}, {
		name:   "a map against fields",
		theirs: `{type: object, properties: {a: {type: object, additionalProperties: {type: string}}, b: {type: object, properties: {x: {type: string}}}}}`,
		ours:   `{type: object, properties: {a: {type: object, properties: {x: {type: string}}}, b: {type: object, additionalProperties: {type: string}}}}`,
		diff: Difference{Extra: []string{"a{}", "b.x"}, Conflicts: []string{
			"a: a map in the cluster, an object with fields in ours", "b: an object with fields in the cluster, a map in ours",
		}},
	}, {
		name:   "wider types",
		theirs: `{type: object, properties: {a: {type: string}, b: {type: integer}, c: {x-kubernetes-int-or-string: true}}}`,
		ours:   `{type: object, properties: {a: {x-kubernetes-int-or-string: true}, b: {type: number}, c: {type: integer}}}`,
		want:   `{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, b: {type: number}, c: {x-kubernetes-int-or-string: true}}}`,
		diff:   Difference{Narrower: []string{"a", "b"}},
	}, {
		name:   "demanded fields",
		theirs: `{type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}}`,
		ours:   `{type: object, required: [b], properties: {a: {type: string}, b: {type: string}}}`,
		want:   `{type: object, required: [b], properties: {a: {type: string}, b: {type: string}}}`,
		diff:   Difference{Narrower: []string{"a"}},
	}, {
		name:   "ours demands more",
		theirs: `{type: object, properties: {a: {type: string}}}`,
		ours:   `{type: object, required: [a], properties: {a: {type: string, minLength: 1, pattern: x, enum: [x]}}}`,
	}, {
		name:   "an enumeration",
		theirs: `{type: string, enum: [a, b]}`,
		ours:   `{type: string, enum: [b, c]}`,
		want:   `{type: string, enum: [a, b, c]}`,
		diff:   Difference{Narrower: []string{"the whole object"}},
	}, {
		name:   "an enumeration against any text",
		theirs: `{type: object, properties: {mode: {type: string, enum: [a]}}}`,
		ours:   `{type: object, properties: {mode: {type: string}}}`,
		want:   `{type: object, properties: {mode: {type: string}}}`,
		diff:   Difference{Narrower: []string{"mode"}},
	}, {
		name:   "limits",
		theirs: `{type: object, properties: {a: {type: string, maxLength: 10, minLength: 2}, b: {type: integer, maximum: 5, exclusiveMaximum: true, minimum: 0}, c: {type: array, maxItems: 3, items: {type: string}}}}`,
		ours:   `{type: object, properties: {a: {type: string, maxLength: 20, minLength: 3}, b: {type: integer, maximum: 5, minimum: 1}, c: {type: array, items: {type: string}}}}`,
		want:   `{type: object, properties: {a: {type: string, maxLength: 20, minLength: 2}, b: {type: integer, maximum: 5, minimum: 0}, c: {type: array, items: {type: string}}}}`,
		diff:   Difference{Narrower: []string{"a", "b", "c"}},
	}, {
		name:   "patterns, formats, null",
		theirs: `{type: object, properties: {a: {type: string, pattern: x}, b: {type: integer, format: int32}, c: {type: string}}}`,
		ours:   `{type: object, properties: {a: {type: string, pattern: y}, b: {type: integer, format: int64}, c: {type: string, nullable: true}}}`,
		want:   `{type: object, properties: {a: {type: string}, b: {type: integer}, c: {type: string, nullable: true}}}`,
		diff:   Difference{Narrower: []string{"a", "b", "c"}},
	}, {
		name:   "rules nobody can compare",
		theirs: `{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: self != ''}]}}}`,
		ours:   `{type: object, properties: {a: {type: string}}}`,
		diff:   Difference{Rules: []string{"a: x-kubernetes-validations"}},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			theirs, ours := parse(t, test.theirs), parse(t, test.ours)
			got, diff := Merge(theirs, ours)
			if d := cmp.Diff(test.diff, diff); d != "" {
				t.Errorf("difference (-want +got):\n%s", d)
			}
			if d := cmp.Diff(parse(t, test.theirs), theirs); d != "" {
				t.Errorf("theirs was changed:\n%s", d)
			}
			if d := cmp.Diff(parse(t, test.ours), ours); d != "" {
				t.Errorf("ours was changed:\n%s", d)
			}
			if len(diff.Conflicts) > 0 {
				return
			}
			want := test.theirs
			if test.want != "" {
				want = test.want
			}
			if d := cmp.Diff(parse(t, want), got); d != "" {
				t.Errorf("merged (-want +got):\n%s", d)
			}
			// What was widened accepts both, and widening it again finds nothing to do.
			for _, side := range []map[string]any{theirs, ours} {
				if again, rest := Merge(got, side); !rest.Accepts() || cmp.Diff(got, again) != "" {
					t.Errorf("the result does not accept %v: %+v", side, rest)
				}
			}
		})
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	result := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	return result
}
