package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

type rule = v1alpha1.ResourceIgnoreDifferences

// entry is one entry of managedFields; fields is its fieldsV1.
func entry(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
	when := metav1.Date(2026, 5, 4, 12, 3, 0, 0, metav1.Now().UTC().Location())
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource, Time: &when,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func ours(fields string) metav1.ManagedFieldsEntry { return entry("lockstep", "Apply", "", fields) }

func object(t *testing.T, text string, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(j); err != nil {
		t.Fatal(err)
	}
	u.SetManagedFields(entries)
	return u
}

func rules(t *testing.T, list ...rule) *compare.Rules {
	t.Helper()
	r, err := compare.ParseRules(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func web(name string) manifest.Key {
	return manifest.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name}
}

func TestRulesMatch(t *testing.T) {
	cm := manifest.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	for name, c := range map[string]struct {
		rule rule
		key  manifest.Key
		want bool
	}{
		"group and kind":           {rule{Group: "apps", Kind: "Deployment"}, web("web"), true},
		"another group":            {rule{Group: "extensions", Kind: "Deployment"}, web("web"), false},
		"no group is the core":     {rule{Kind: "Deployment"}, web("web"), false},
		"core":                     {rule{Kind: "ConfigMap"}, cm, true},
		"any group":                {rule{Group: "*", Kind: "*"}, web("web"), true},
		"any group holds the core": {rule{Group: "*", Kind: "*"}, cm, true},
		"part of a kind":           {rule{Group: "*.k8s.io", Kind: "*Role"}, manifest.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"}, true},
		"name":                     {rule{Group: "apps", Kind: "Deployment", Name: "web-*"}, web("web-1"), true},
		"another name":             {rule{Group: "apps", Kind: "Deployment", Name: "web-*"}, web("api"), false},
		"namespace":                {rule{Group: "apps", Kind: "Deployment", Namespace: "sh?p"}, web("web"), true},
		"another namespace":        {rule{Group: "apps", Kind: "Deployment", Namespace: "prod"}, web("web"), false},
		"case counts":              {rule{Group: "apps", Kind: "deployment"}, web("web"), false},
	} {
		if got := !rules(t, c.rule).For(c.key).Empty(); got != c.want {
			t.Errorf("%s: matches %v", name, got)
		}
	}
	if !(*compare.Rules)(nil).For(cm).Empty() {
		t.Error("no rules match something")
	}
}

func TestInvalidRules(t *testing.T) {
	ok := rule{Kind: "ConfigMap", JSONPointers: []string{"/data/a~1b", "/data/c~0d"}}
	for name, c := range map[string]struct {
		rule  rule
		parts []string
	}{
		"no kind":            {rule{JSONPointers: []string{"/a"}}, []string{"[1].kind"}},
		"pattern":            {rule{Kind: "[a"}, []string{"[1].kind"}},
		"name pattern":       {rule{Kind: "A", Name: "a["}, []string{"[1].name"}},
		"no slash":           {rule{Kind: "A", JSONPointers: []string{"/a", "spec/replicas"}}, []string{"[1].jsonPointers[1]", "slash"}},
		"empty pointer":      {rule{Kind: "A", JSONPointers: []string{""}}, []string{"[1].jsonPointers[0]", "whole object"}},
		"escape":             {rule{Kind: "A", JSONPointers: []string{"/a~2"}}, []string{"[1].jsonPointers[0]", "~0"}},
		"escape at the end":  {rule{Kind: "A", JSONPointers: []string{"/a~0~"}}, []string{"[1].jsonPointers[0]", "~0"}},
		"jq syntax":          {rule{Kind: "A", JQPathExpressions: []string{".a["}}, []string{"[1].jqPathExpressions[0]", ".a["}},
		"jq function":        {rule{Kind: "A", JQPathExpressions: []string{".a", "nosuch(.b)"}}, []string{"[1].jqPathExpressions[1]", "nosuch"}},
		"jq closes the path": {rule{Kind: "A", JQPathExpressions: []string{".a), (.b"}}, []string{"[1].jqPathExpressions[0]"}},
		"jq too long":        {rule{Kind: "A", JQPathExpressions: []string{"." + strings.Repeat("a", 9000)}}, []string{"[1].jqPathExpressions[0]", "long"}},
	} {
		_, err := compare.ParseRules([]rule{ok, c.rule})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, p := range append(c.parts, "spec.ignoreDifferences") {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %q does not say %q", name, err, p)
			}
		}
	}
}

const (
	normalText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {a: "1", b/c: x}}
spec:
  replicas: 2
  list: [1, 2]
  template:
    spec:
      containers:
      - {name: main, image: "i:1", cpu: 1}
      - {name: side, image: "s:1"}
`
	normalFields = `{"f:metadata":{"f:labels":{"f:a":{},"f:b/c":{}}},"f:spec":{"f:replicas":{},"f:list":{},"f:template":{"f:spec":{"f:containers":{` +
		`"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{},"f:cpu":{}},"k:{\"name\":\"side\"}":{".":{},"f:name":{},"f:image":{}}}}}}}`
)

func TestIgnoredFieldsAreNotCompared(t *testing.T) {
	live := strings.NewReplacer("replicas: 2", "replicas: 5", "s:1", "s:2", "b/c: x", "b/c: y", "[1, 2]", "[1, 3]").Replace(normalText)
	all := []string{".metadata.labels.b/c", ".spec.list", ".spec.replicas", `.spec.template.spec.containers[name="side"].image`}
	less := func(drop ...int) []string {
		var out []string
		for i, p := range all {
			if !slices.Contains(drop, i) {
				out = append(out, p)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		rule rule
		want []string
	}{
		"nothing":                 {rule{}, all},
		"pointer":                 {rule{JSONPointers: []string{"/spec/replicas"}}, less(2)},
		"pointer with escape":     {rule{JSONPointers: []string{"/metadata/labels/b~1c"}}, less(0)},
		"pointer to an item":      {rule{JSONPointers: []string{"/spec/template/spec/containers/1/image"}}, less(3)},
		"pointer in atomic list":  {rule{JSONPointers: []string{"/spec/list/1"}}, less(1)},
		"pointer to nothing":      {rule{JSONPointers: []string{"/spec/nope", "/spec/list/9", "/spec/list/x", "/spec/replicas/x"}}, all},
		"pointer to a whole part": {rule{JSONPointers: []string{"/spec"}}, less(1, 2, 3)},
		"jq":                      {rule{JQPathExpressions: []string{".spec.replicas"}}, less(2)},
		"jq select":               {rule{JQPathExpressions: []string{`.spec.template.spec.containers[] | select(.name == "side") | .image`}}, less(3)},
		"jq whole item":           {rule{JQPathExpressions: []string{`.spec.template.spec.containers[] | select(.name == "side")`}}, less(3)},
		"jq last item":            {rule{JQPathExpressions: []string{`.spec.list[-1]`}}, less(1)},
		"jq slice":                {rule{JQPathExpressions: []string{`.spec.list[1:]`}}, less(1)},
		"jq several":              {rule{JQPathExpressions: []string{`.spec | (.replicas, .list)`}}, less(1, 2)},
		"jq on nothing":           {rule{JQPathExpressions: []string{`.spec.nope[].x`, `.spec.replicas | tostring`}}, all},
		"manager":                 {rule{ManagedFieldsManagers: []string{"hpa"}}, less(2)},
		"manager of an item":      {rule{ManagedFieldsManagers: []string{"injector", "nobody"}}, less(3)},
		"another kind":            {rule{Kind: "StatefulSet", JSONPointers: []string{"/spec"}}, all},
	} {
		if c.rule.Kind == "" {
			c.rule.Group, c.rule.Kind = "apps", "Deployment"
		}
		f, err := rules(t, c.rule).For(web("web")).WithNormal(t.Context(), compare.Sides{
			Normal: object(t, normalText, ours(normalFields)),
			Live: object(t, live, entry("hpa", "Update", "scale", `{"f:spec":{"f:replicas":{}}}`),
				entry("injector", "Apply", "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"side\"}":{".":{},"f:name":{},"f:image":{}}}}}}}`)),
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, f.Paths); d != "" || f.Verdict != compare.Different {
			t.Errorf("%s: verdict %v %s", name, f.Verdict, d)
		}
	}
}

// What our entry lost since the same object was applied counts, whatever its value is now, unless it is ignored.
func TestLostFields(t *testing.T) {
	without := func(fields ...string) string {
		out := normalFields
		for _, f := range fields {
			out = strings.Replace(out, `"`+f+`":{},`, "", 1)
		}
		return out
	}
	pointer := rule{Group: "apps", Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}}
	query := rule{Group: "apps", Kind: "Deployment", JQPathExpressions: []string{".spec.replicas"}}
	part := rule{Group: "apps", Kind: "Deployment", JSONPointers: []string{"/spec/list/1"}}
	for name, c := range map[string]struct {
		rule    rule
		fields  string
		live    string
		applied bool
		want    compare.Finding
	}{
		"all ours":                       {pointer, normalFields, normalText, true, compare.Finding{Verdict: compare.Equal}},
		"ignored and changed":            {pointer, without("f:replicas"), strings.Replace(normalText, "replicas: 2", "replicas: 5", 1), true, compare.Finding{Verdict: compare.Equal, Masked: true}},
		"ignored by value":               {query, without("f:replicas"), normalText, true, compare.Finding{Verdict: compare.Equal, Masked: true, Loose: true}},
		"edited and edited back":         {pointer, without("f:a"), normalText, true, compare.Finding{Verdict: compare.Different, Paths: []string{".metadata.labels.a"}}},
		"not known since when":           {pointer, without("f:a"), normalText, false, compare.Finding{Verdict: compare.Equal, Loose: true}},
		"ignored in part":                {part, without("f:list"), strings.Replace(normalText, "[1, 2]", "[1, 7]", 1), true, compare.Finding{Verdict: compare.Equal, Masked: true, Loose: true}},
		"ignored in part, rest differs":  {part, without("f:list"), strings.Replace(normalText, "[1, 2]", "[0, 7]", 1), true, compare.Finding{Verdict: compare.Different, Paths: []string{".spec.list"}}},
		"ours and gone from the source":  {pointer, strings.Replace(normalFields, `"f:list":{}`, `"f:list":{},"f:old":{}`, 1), normalText + "  old: x\n", true, compare.Finding{Verdict: compare.Different, Paths: []string{".spec.old"}}},
		"ignored and gone from the rest": {rule{Group: "apps", Kind: "Deployment", JSONPointers: []string{"/spec/old"}}, strings.Replace(normalFields, `"f:list":{}`, `"f:list":{},"f:old":{}`, 1), normalText + "  old: x\n", true, compare.Finding{Verdict: compare.Equal, Masked: true}},
	} {
		f, err := rules(t, c.rule).For(web("web")).WithNormal(t.Context(), compare.Sides{
			Normal: object(t, normalText, ours(normalFields)), Live: object(t, c.live, ours(c.fields)), Applied: c.applied,
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, f); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestExpressionsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ expression, part string }{
		"time":   {"last(range(1e12) | select(. < 0)) | .spec", "longer than 1s"},
		"loop":   {"def f: f; f", "longer than 1s"},
		"output": {"range(20000) as $i | .spec", "more than 10000"},
	} {
		r := rules(t, rule{Kind: "*", Group: "*", JQPathExpressions: []string{".a", c.expression}})
		_, err := r.For(web("web")).WithNormal(t.Context(), compare.Sides{
			Normal: object(t, normalText, ours(normalFields)), Live: object(t, strings.Replace(normalText, "i:1", "i:2", 1)),
		})
		if err == nil || !strings.Contains(err.Error(), c.part) || !strings.Contains(err.Error(), "spec.ignoreDifferences[0].jqPathExpressions[1]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a predecessor declared and Git does not is compared with and without rules, less what they name.
func TestIgnoredAndInherited(t *testing.T) {
	inherited := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "old"), fieldpath.MakePathOrDie("spec", "older"))
	for pointer, want := range map[string][]string{
		"/spec/replicas": {".spec.old", ".spec.older"},
		"/spec/old":      {".spec.older"},
	} {
		f, err := rules(t, rule{Group: "apps", Kind: "Deployment", JSONPointers: []string{pointer}}).For(web("web")).WithNormal(t.Context(), compare.Sides{
			Normal: object(t, normalText, ours(normalFields)), Live: object(t, normalText+"  old: x\n  older: y\n"), Inherited: inherited,
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, f.Paths); d != "" || f.Verdict != compare.Different {
			t.Errorf("%s: verdict %v %s", pointer, f.Verdict, d)
		}
	}
}
