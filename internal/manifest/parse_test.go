package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// summary is Kind/name@line of what a text holds.
func summary(t *testing.T, file, text string) []string {
	t.Helper()
	objects, warnings, err := manifest.Parse(file, []byte(text), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Fatalf("warnings: %q", warnings)
	}
	out := []string{}
	for _, o := range objects {
		out = append(out, fmt.Sprintf("%s/%s@%d", o.GetKind(), o.GetName(), o.Origin.Line))
	}
	return out
}

func cm(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

func TestDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one":                 {cm("a"), []string{"ConfigMap/a@1"}},
		"two":                 {cm("a") + "---\n" + cm("b"), []string{"ConfigMap/a@1", "ConfigMap/b@5"}},
		"empty":               {"", []string{}},
		"comments only":       {"# nothing\n\n  # here\n", []string{}},
		"end marker":          {cm("a") + "...\n" + cm("b"), []string{"ConfigMap/a@1", "ConfigMap/b@5"}},
		"directive":           {"%YAML 1.1\n---\n" + cm("a") + "...\n%YAML 1.1\n---\n" + cm("b"), []string{"ConfigMap/a@3", "ConfigMap/b@9"}},
		"value on marker":     {"--- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", []string{"ConfigMap/a@1"}},
		"no final newline":    {cm("a") + "---\n" + strings.TrimSpace(cm("b")) + "\n---", []string{"ConfigMap/a@1", "ConfigMap/b@5"}},
		"leading comment":     {"# a\n---\n# b\n\n" + cm("a"), []string{"ConfigMap/a@5"}},
		"bom in the middle":   {cm("a") + "\xef\xbb\xbf---\n" + cm("b"), []string{"ConfigMap/a@1", "ConfigMap/b@5"}},
		"bare line ends":      {strings.ReplaceAll(cm("a")+"---\n"+cm("b"), "\n", "\r"), []string{"ConfigMap/a@1", "ConfigMap/b@1"}},
		"dashes in text":      {cm("a") + "data:\n  t: |\n    ---\n    x\n  ----: y\n", []string{"ConfigMap/a@1"}},
		"json":                {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, []string{"ConfigMap/a@1"}},
		"json stream":         {"{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"B\",\"metadata\":{\"name\":\"b\"}}", nil},
		"generateName":        {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n", []string{"Pod/@1"}},
		"list":                {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- null\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: B, metadata: {name: b}}]\n", []string{"A/a@1", "B/b@1"}},
		"typed list":          {"apiVersion: v1\nkind: ConfigMapList\nmetadata: {}\nitems: [{metadata: {name: a}}]\n", []string{"ConfigMap/a@1"}},
		"empty list":          {"apiVersion: v1\nkind: List\nitems:\n", []string{}},
		"kind named list":     {"apiVersion: x.io/v1\nkind: AllowList\nmetadata: {name: l}\nitems: [{a: b}]\n", []string{"AllowList/l@1"}},
		"merge with override": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nx: &x {a: b}\ndata:\n  <<: *x\n  a: c\n", []string{"ConfigMap/m@1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == nil { // a stream is no valid JSON value, so the name of the file must say it
				if diff := cmp.Diff([]string{"A/a@1", "B/b@2"}, summary(t, "x.json", c.text)); diff != "" {
					t.Error(diff)
				}
				return
			}
			if diff := cmp.Diff(c.want, summary(t, "x.yaml", c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestC010EmptyDocuments(t *testing.T) {
	text := "# only a heading\n---\n---\n# nothing here\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: only}\n---\n\n---\nnull\n"
	if diff := cmp.Diff([]string{"ConfigMap/only@6"}, summary(t, "all.yaml", text)); diff != "" {
		t.Error(diff)
	}
}

func c013(value string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w1}\ndata:\n  t: |\n    -----BEGIN X-----\n    " + value +
		"\n    ---\n    -----END X-----\n--- # second\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: w2}\n"
	return "\xef\xbb\xbf" + strings.ReplaceAll(text, "\n", "\r\n")
}

func TestC013WindowsFile(t *testing.T) {
	objects, _, err := manifest.Parse("w.yaml", []byte(c013("a---b")), manifest.Options{})
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	data := objects[0].Object["data"].(map[string]any)["t"]
	if want := "-----BEGIN X-----\na---b\n---\n-----END X-----\n"; data != want {
		t.Errorf("data.t = %q, want %q", data, want)
	}
	if objects[1].GetName() != "w2" || objects[1].Origin.Line != 11 {
		t.Errorf("second object is %s at %s", objects[1].GetName(), objects[1].Origin)
	}
	_, _, err = manifest.Parse("w.yaml", []byte(c013("a\xff")), manifest.Options{})
	if err == nil || err.Error() != "w.yaml:7: is not UTF-8 text" {
		t.Errorf("error is %v", err)
	}
}

func TestC007DuplicateKeys(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dup\n  labels: {team: red}\n  labels: {team: blue}\ndata: {k: v}\n"
	_, _, err := manifest.Parse("dup.yaml", []byte("---\n"+text), manifest.Options{})
	want := `dup.yaml:7: key "labels" stands twice in one mapping, first in line 6`
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	objects, warnings, err := manifest.Parse("dup.yaml", []byte(text), manifest.Options{LastKeyWins: true})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], `"labels"`) {
		t.Fatalf("warnings %q, error %v", warnings, err)
	}
	if got := objects[0].GetLabels()["team"]; got != "blue" {
		t.Errorf("team is %q, want blue", got)
	}
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for _, c := range []struct{ file, text, want string }{
		{"a.yaml", "a: b\n", "a.yaml:1: apiVersion and kind are missing, this is no Kubernetes object"},
		{"a.yaml", "kind: A\n", "a.yaml:1: A: apiVersion is missing"},
		{"a.yaml", "apiVersion: v1\n", "a.yaml:1: kind is missing"},
		{"a.yaml", "apiVersion: v1\nkind: A\n", "a.yaml:1: A: metadata.name is missing"},
		{"a.yaml", "\n\napiVersion: v1\nkind: A\nmetadata: x\n", "a.yaml:3: A: metadata is a text, not a mapping"},
		{"a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: 12}\n", "a.yaml:1: A: metadata.name is the number 12, not text: write it in quotes"},
		{"a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {on: x, v: 1.5}}\n", "a.yaml:1: A/a: metadata.labels.v is the number 1.5, not text: write it in quotes"},
		{"a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a, annotations: {x: {y: z}}}\n", "a.yaml:1: A/a: metadata.annotations.x is a mapping, not text"},
		{"a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a, labels: [x]}\n", "a.yaml:1: A/a: metadata.labels is a list, not a mapping"},
		{"a.yaml", "apiVersion: a/b/c\nkind: A\nmetadata: {name: a}\n", `a.yaml:1: A/a: apiVersion "a/b/c" is not of the form group/version`},
		{"a.yaml", cm("a") + "---\n- x\n", "a.yaml:5: the document is a list, not an object"},
		{"a.yaml", cm("a") + "---\njust words\n", "a.yaml:5: the document is a text, not an object"},
		{"a.yaml", cm("a") + "---\n" + cm("b") + "data:\n  a: b: c\n", "a.yaml:9: YAML: mapping values are not allowed in this context"},
		{"a.yaml", cm("a") + "data: *nowhere\n", "a.yaml:1: YAML: unknown anchor 'nowhere' referenced"},
		{"a.yaml", cm("a") + "data: {? [a] : b}\n", "a.yaml:1: YAML: invalid map key"},
		{"a.yaml", cm("a") + "data: {~: b}\n", "a.yaml:1: YAML: a key is empty or null"},
		{"a.yaml", cm("a") + "data: {1: b, '1': c}\n", `a.yaml:1: YAML: key "1" stands twice in one mapping, as text and as another type`},
		{"a.yaml", cm("a") + "x: .inf\n", "a.yaml:1: YAML: number +Inf has no place in a Kubernetes object"},
		{"a.yaml", cm("a") + "x: " + deep + "\n", "a.yaml:1: YAML: is nested more than 200 levels deep"},
		{"a.yaml", cm("a") + "x: \"a\n---\nb\"\n", "a.yaml:5: YAML: found unexpected end of stream"},
		{"a.json", `{"apiVersion":"v1","kind":"A",` + "\n" + `"kind":"B"}`, `a.json:2: key "kind" stands twice in one object`},
		{"a.json", "{\n\"a\": }", "a.json:2: JSON: invalid character '}' looking for beginning of value"},
		{"a.json", "{\n\"a\": 1", "a.json:2: JSON: the text ends inside of a value"},
		{"a.json", `{"x":` + deep + `}`, "a.json:1: is nested more than 200 levels deep"},
		{"a.json", "{\"x\": 1e999}", "a.json:1: JSON: number 1e999 is out of range"},
	} {
		_, _, err := manifest.Parse(c.file, []byte(c.text), manifest.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
		var pe *manifest.ParseError
		if err != nil && !errors.As(err, &pe) {
			t.Errorf("%q: error is a %T", c.text, err)
		}
	}
}

func TestNullLabelIsDropped(t *testing.T) {
	text := "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  labels: {x: null, q: z}\n  annotations:\n"
	objects, warnings, err := manifest.Parse("a.yaml", []byte(text), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.yaml:1: A/a: metadata.labels.x is null and left out"}, warnings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"q": "z"}, objects[0].GetLabels()); diff != "" {
		t.Error(diff)
	}
}

func TestBounds(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString(cm("lol") + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	wide := cm("wide") + "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a, ", 90), ", ") + "]\n"
	for name, c := range map[string]struct {
		text string
		opts manifest.Options
		want string
	}{
		"billion laughs":  {laughs.String(), manifest.Options{}, "excessive aliasing"},
		"one large alias": {wide, manifest.Options{}, "grows too large once its aliases are expanded"},
		"size":            {cm("a"), manifest.Options{MaxBytes: 10}, "a.yaml: has 51 bytes, more than the 10 that are allowed"},
		"objects":         {cm("a") + "---\n" + cm("b"), manifest.Options{MaxObjects: 1}, "a.yaml:5: holds more than 1 objects"},
		"brackets":        {strings.Repeat("[", 1<<20), manifest.Options{}, "depth"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := manifest.Parse("a.yaml", []byte(c.text), c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}
