package compare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/internal/compare"
)

func TestDecide(t *testing.T) {
	proof := compare.Pair{Desired: "d", Entry: "e"}
	cases := []struct {
		name  string
		facts compare.Facts
		want  compare.Verdict
	}{
		{"not there", compare.Facts{Applied: proof}, compare.Missing},
		{"first sight", compare.Facts{Live: true, Entry: "e"}, compare.Undecided},
		{"untouched", compare.Facts{Live: true, Entry: "e", Applied: proof}, compare.Equal},
		{"changed in the cluster", compare.Facts{Live: true, Entry: "f", Applied: proof}, compare.Different},
		{"all of ours taken over", compare.Facts{Live: true, Applied: proof}, compare.Different},
		{"changed in Git", compare.Facts{Live: true, Entry: "e", Applied: compare.Pair{Desired: "before", Entry: "e"}}, compare.Undecided},
		{"changed on both sides", compare.Facts{Live: true, Entry: "f", Applied: compare.Pair{Desired: "before", Entry: "e"}}, compare.Undecided},
		{"created, never applied", compare.Facts{Live: true, Applied: compare.Pair{Desired: "d"}}, compare.Equal},
	}
	for _, c := range cases {
		if got := compare.Decide("d", c.facts); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestEntryHash(t *testing.T) {
	base := []metav1.ManagedFieldsEntry{entry("kubectl", "Apply", "", `{"f:x":{}}`), ours(`{"f:data":{"f:a":{}}}`)}
	hash := compare.EntryHash(base)
	if hash == "" {
		t.Fatal("our entry has no hash")
	}
	for name, list := range map[string][]metav1.ManagedFieldsEntry{
		"nobody":            nil,
		"an update of ours": {entry("lockstep", "Update", "", `{"f:a":{}}`)},
		"a subresource":     {entry("lockstep", "Apply", "status", `{"f:a":{}}`)},
		"another manager":   {entry("kubectl", "Apply", "", `{"f:a":{}}`)},
		"no fields":         {{Manager: "lockstep", Operation: "Apply"}},
	} {
		if got := compare.EntryHash(list); got != "" {
			t.Errorf("%s has the hash %s", name, got)
		}
	}
	if compare.EntryHash([]metav1.ManagedFieldsEntry{ours(`{"f:data":{}}`)}) == hash {
		t.Error("another set of fields has the same hash")
	}
	later := ours(`{"f:data":{"f:a":{}}}`)
	later.Time, later.APIVersion = nil, "v2"
	if compare.EntryHash([]metav1.ManagedFieldsEntry{later}) != hash {
		t.Error("time and version are part of the hash")
	}
}

func TestOwned(t *testing.T) {
	set, err := compare.Owned([]metav1.ManagedFieldsEntry{ours(`{"f:data":{"f:a":{}}}`)}, compare.Manager)
	if err != nil || set.String() != ".data.a" {
		t.Errorf("got %v, %v", set, err)
	}
	if set, err := compare.Owned(nil, compare.Manager); set != nil || err != nil {
		t.Errorf("nothing: %v, %v", set, err)
	}
	if _, err := compare.Owned([]metav1.ManagedFieldsEntry{ours(`{"x`)}, compare.Manager); err == nil {
		t.Error("a broken entry is no error")
	}
}

func TestDescribe(t *testing.T) {
	for want, paths := range map[string][]string{"": nil, ".a differs": {".a"}, ".a and 2 more fields differ": {".a", ".b", ".c"}} {
		if got := compare.Describe(paths); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWithNormalByHand(t *testing.T) {
	const envs = `{"f:spec":{"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}}}}`
	cases := []struct {
		name, fields, normal, live, owned string
		want                              []string
	}{
		{"equal", `{"f:spec":{"f:a":{}}}`, `{spec: {a: 1}}`, `{spec: {a: 1, b: 2}}`, "", nil},
		{"a whole number has one form", `{"f:spec":{"f:a":{}}}`, `{spec: {a: 1}}`, `{spec: {a: 1.0}}`, "", nil},
		{"another value", `{"f:spec":{"f:a":{}}}`, `{spec: {a: 1}}`, `{spec: {a: "1"}}`, "", []string{".spec.a"}},
		{"missing in live", `{"f:spec":{"f:a":{}}}`, `{spec: {a: 0}}`, `{spec: {}}`, "", []string{".spec.a"}},
		{"an empty map is there or not", `{"f:spec":{"f:a":{}}}`, `{spec: {a: {}}}`, `{spec: {}}`, "", []string{".spec.a"}},
		{"an atomic list as a whole", `{"f:spec":{"f:a":{}}}`, `{spec: {a: [1, 2]}}`, `{spec: {a: [2, 1]}}`, "", []string{".spec.a"}},
		{"a set has no order", `{"f:spec":{"f:a":{"v:\"x\"":{},"v:\"y\"":{}}}}`, `{spec: {a: [x, y]}}`, `{spec: {a: [y, z, x]}}`, "", nil},
		{"a value missing in a set", `{"f:spec":{"f:a":{"v:\"x\"":{}}}}`, `{spec: {a: [x, y]}}`, `{spec: {a: [y]}}`, "", []string{`.spec.a[="x"]`}},
		{"items of others stand between", envs, `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`,
			`{spec: {env: [{name: A, value: "1"}, {name: X}, {name: B, value: "2"}]}}`, "", nil},
		{"items in another order", envs, `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`,
			`{spec: {env: [{name: B, value: "2"}, {name: A, value: "1"}]}}`, "", []string{".spec.env"}},
		{"an item with another value", envs, `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`,
			`{spec: {env: [{name: A, value: "1"}, {name: B, value: "3"}]}}`, "", []string{`.spec.env[name="B"].value`}},
		{"no longer declared", `{"f:spec":{"f:a":{}}}`, `{spec: {a: 1}}`, `{spec: {a: 1, b: 2}}`, `{"f:spec":{"f:a":{},"f:b":{}}}`, []string{".spec.b"}},
		{"no longer declared, kept by somebody", `{"f:spec":{"f:a":{}}}`, `{spec: {a: 1, b: 2}}`, `{spec: {a: 1, b: 2}}`, `{"f:spec":{"f:a":{},"f:b":{}}}`, nil},
		{"no longer declared, gone already", `{"f:spec":{"f:a":{}}}`, `{spec: {a: 1}}`, `{spec: {a: 1}}`, `{"f:spec":{"f:a":{},"f:b":{}}}`, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			head := `{apiVersion: v1, kind: X, metadata: {name: a}, `
			s := compare.Sides{Normal: object(t, head+c.normal[1:], ours(c.fields)), Live: object(t, head+c.live[1:])}
			if c.owned != "" {
				s.Live.SetManagedFields([]metav1.ManagedFieldsEntry{ours(c.owned)})
			}
			verdict, paths, err := compare.WithNormal(s)
			want := compare.Equal
			if len(c.want) > 0 {
				want = compare.Different
			}
			if err != nil || verdict != want {
				t.Errorf("verdict %d, %v", verdict, err)
			}
			if d := cmp.Diff(c.want, paths); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestWithNormalWithoutASide(t *testing.T) {
	o := object(t, `{apiVersion: v1, kind: X, metadata: {name: a}}`)
	if v, _, err := compare.WithNormal(compare.Sides{Normal: o}); v != compare.Missing || err != nil {
		t.Errorf("without a live object: %d, %v", v, err)
	}
	if v, _, err := compare.WithNormal(compare.Sides{Normal: o, Live: o}); v != compare.Undecided || err != nil {
		t.Errorf("without an entry of ours: %d, %v", v, err)
	}
}
