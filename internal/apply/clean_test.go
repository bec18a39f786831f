package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/internal/apply"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestClean(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"what Git can't decide",
			`{apiVersion: v1, kind: Pod, metadata: {name: a, uid: u, resourceVersion: "1", creationTimestamp: null, generation: 3, selfLink: x,
			 managedFields: [{manager: m}], labels: {status: kept}}, spec: {status: kept}, status: {phase: Running}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {status: kept}}, spec: {status: kept}}`},
		{"nulls", `{apiVersion: v1, kind: Pod, metadata: {name: a, labels: null}, spec: {a: null, b: [{c: null, d: 1}, 2], e: {f: null}, g: "", h: 0, i: false, j: []}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {b: [{d: 1}, 2], e: {}, g: "", h: 0, i: false, j: []}}`},
		{"nulls in lists of lists", `{apiVersion: x/v1, kind: A, metadata: {name: a}, spec: [[{a: null, b: 1}]]}`,
			`{apiVersion: x/v1, kind: A, metadata: {name: a}, spec: [[{b: 1}]]}`},
		{"stringData", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: QQ==, b: Qg==}, stringData: {b: "new", c: "", d: null}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: QQ==, b: bmV3, c: "", d: ""}}`},
		{"stringData alone", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: "A"}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: QQ==}}`},
		{"stringData of null", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: null, stringData: null}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {}}`},
		{"stringData of another group", `{apiVersion: example.com/v1, kind: Secret, metadata: {name: a}, stringData: {a: "A"}}`,
			`{apiVersion: example.com/v1, kind: Secret, metadata: {name: a}, stringData: {a: "A"}}`},
		{"operation of an Application", `{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}, operation: {sync: {}}, spec: {operation: x}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}, spec: {operation: x}}`},
		{"operation of another kind", `{apiVersion: example.com/v1, kind: Application, metadata: {name: a}, operation: {sync: {}}}`,
			`{apiVersion: example.com/v1, kind: Application, metadata: {name: a}, operation: {sync: {}}}`},
		{"aggregated rules", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {x: 1}, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {x: 1}}`},
		{"own rules", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}`},
		{"an aggregation rule of null", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: null, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := parse(t, c.in)
			got, err := apply.Clean(in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(parse(t, c.want).Object, got.Object); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if d := cmp.Diff(parse(t, c.in).Object, in.Object); d != "" {
				t.Errorf("the object given was changed: %s", d)
			}
		})
	}
}

func TestC060CleanNamesTheKeyNotTheValue(t *testing.T) {
	cases := map[string]string{
		`{stringData: {pw: CANARY, num: 12345}}`:     "Secret/web/bad: stringData.num is not a text; put it in quotes",
		`{stringData: {flag: true}}`:                 "Secret/web/bad: stringData.flag is not a text; put it in quotes",
		`{stringData: [CANARY]}`:                     "Secret/web/bad: stringData is not a map of texts",
		`{stringData: CANARY}`:                       "Secret/web/bad: stringData is not a map of texts",
		`{stringData: {a: CANARY}, data: CANARY}`:    "Secret/web/bad: data is not a map of texts",
		`{stringData: {a: [CANARY]}, data: {b: ""}}`: "Secret/web/bad: stringData.a is not a text; put it in quotes",
	}
	for text, want := range cases {
		u := parse(t, text)
		u.SetAPIVersion("v1")
		u.SetKind("Secret")
		u.SetNamespace("web")
		u.SetName("bad")
		_, err := apply.Clean(u)
		if err == nil || err.Error() != want || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
