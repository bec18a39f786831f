package manifest_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// reference is the object kubectl would send for a text of one document.
func reference(text []byte) (map[string]any, error) {
	j, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(j, &out)
}

const head = "apiVersion: v1\nkind: A\nmetadata: {name: a}\nx:\n"

// compareWithReference parses head followed by body and wants the reference's values, where both take the text.
func compareWithReference(t *testing.T, body []byte) {
	t.Helper()
	text := append([]byte(head), body...)
	objects, _, err := manifest.Parse("f.yaml", text, manifest.Options{})
	if err != nil || len(objects) != 1 {
		return
	}
	want, err := reference(text)
	if err != nil {
		t.Fatalf("taken, but the reference says: %v", err)
	}
	if meta, ok := want["metadata"].(map[string]any); ok {
		withoutNulls(meta, "labels")
		withoutNulls(meta, "annotations")
	}
	if diff := cmp.Diff(want, objects[0].Object); diff != "" {
		t.Error(diff)
	}
}

func withoutNulls(meta map[string]any, field string) {
	m, ok := meta[field].(map[string]any)
	if !ok {
		delete(meta, field)
		return
	}
	for k, v := range m {
		if v == nil {
			delete(m, k)
		}
	}
}

func TestValuesEqualReference(t *testing.T) {
	for _, v := range []string{
		"yes", "no", "on", "off", "y", "n", "Y", "True", "~", "null", "", "'yes'", "010", "0o10", "0x1F", "0b101", "1_000", "1.0",
		"1e3", "-0.0", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615", "1e400",
		"123456789012345678901234567890", "2001-01-01", "2001-01-01T00:00:00Z", "!!str 12", "!!int '12'", "!!float 3", "12:30:45",
		"!!binary gIGC", "!!timestamp 2001-01-01", "1.", ".5", "+1", "0.1", "1e21", "1e-7", "\"\\u00e9\\x41\"", "!custom x", "=", "<<",
		"|\n   a\n   b", ">-\n   a\n   b\n\n   c", "{1: a, true: b, 1.5: c, no: d}", "[a, , b]", "&a {b: *c}", "-", "@x", "`x", "%x",
	} {
		t.Run(v, func(t *testing.T) { compareWithReference(t, []byte("  v: "+v+"\n")) })
	}
	for _, body := range []string{
		"  - &a {b: c}\n  - {<<: *a, b: d}\n  - {b: e, <<: *a}\n  - {<<: [{f: g}, *a]}\n",
		"  a: &x [1, 2]\n  b: *x\n", "  - 1\n  -\n  - - 2\n", "  'k': \"v\\\n   w\"\n", "  ? a\n  : b\n", "  a: b # c\n  d: 'e # f'\n",
	} {
		compareWithReference(t, []byte(body))
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"  a: b\n", "---\nfoo: bar\n", "  - &a {b: c}\n  - *a\n", "\xef\xbb\xbf", "  a: |\n    ---\n...\n", "  a: !!binary AAA=\n",
		"{\"a\": 1.0}", "%YAML 1.1\n---\n", "  a: 1e3\r\n", "  ? {a: b}\n  : c\n", "  a: 0x7fffffffffffffff\n", "  <<: {a: b}\n  a: c\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		objects, _, err := manifest.Parse("f.yaml", body, manifest.Options{})
		for _, o := range objects {
			if o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName()+o.GetGenerateName() == "" || o.Origin.Line < 1 {
				t.Errorf("incomplete object %v of %q", o, body)
			}
			o.DeepCopy() // panics for values that JSON does not have
		}
		if err != nil && len(objects) > 0 {
			t.Error("objects and an error")
		}
		_, _, _ = manifest.Parse("f.json", body, manifest.Options{})
		if !bytes.Contains(body, []byte("---")) && !bytes.Contains(body, []byte("...")) {
			compareWithReference(t, body)
		}
	})
}
