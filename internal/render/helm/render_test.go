package helm_test

import (
	"context"
	"encoding/json"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/helm"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// input is a job for the chart in folder app of files.
func input(files map[string]string, options v1alpha1.ApplicationSourceHelm) job.Input {
	m := tree.Map{}
	for name, text := range files {
		m[name] = []byte(text)
	}
	return job.Input{
		Tree: m, Path: "app", AppName: "shop", Namespace: "prod",
		Source: v1alpha1.ApplicationSource{Helm: &options},
		Env:    map[string]string{"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_REVISION": "abc"},
	}
}

// dump is a chart that shows its values.
func dump(more map[string]string) map[string]string {
	files := map[string]string{
		"app/Chart.yaml":        "{apiVersion: v2, name: dump, version: 1.0.0}",
		"app/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\", namespace: \"{{ .Release.Namespace }}\"}\ndata: {values: {{ toJson .Values | quote }}}\n",
	}
	for name, text := range more {
		files[name] = text
	}
	return files
}

func render(t *testing.T, in job.Input) job.Output {
	t.Helper()
	out, err := helm.Render(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// field is a field of data of the named object, which holds JSON.
func field(t *testing.T, out job.Output, name, key string) map[string]any {
	t.Helper()
	for _, o := range out.Objects {
		if o.GetName() != name {
			continue
		}
		data, _ := o.Object["data"].(map[string]any)
		var value map[string]any
		if err := json.Unmarshal([]byte(data[key].(string)), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	t.Fatalf("no object %s", name)
	return nil
}

func names(out job.Output) []string {
	var all []string
	for _, o := range out.Objects {
		all = append(all, o.GetKind()+"/"+o.GetName())
	}
	return all
}

func TestOrderOfValues(t *testing.T) {
	files := dump(map[string]string{
		"app/values.yaml": "{a: chart, b: chart, c: chart, d: chart, e: chart, f: chart, g: chart}",
		"app/one.yaml":    "{b: one, c: one, d: one, e: one, f: one, g: one}",
		"shared/two.yaml": "{c: two, d: two, e: two, f: two, g: two}",
		"app/motd.txt":    "a, b\n",
		"app/shop.yaml":   "own: true",
		"app/g/1.yaml":    "{glob: 1, first: yes}",
		"app/g/2.yaml":    "{glob: 2}",
		"app/g/d/3.yaml":  "{glob: 3}",
	})
	in := input(files, v1alpha1.ApplicationSourceHelm{
		ValueFiles:   []string{"one.yaml", "/shared/two.yaml", "$ARGOCD_APP_NAME.yaml", "g/*.yaml", "$more/$ARGOCD_APP_NAME/three.yaml"},
		Values:       "{e: values, lost: yes}",
		ValuesObject: &runtime.RawExtension{Raw: []byte(`{"d": "object", "f": "object", "g": "object"}`)},
		Parameters: []v1alpha1.HelmParameter{
			{Name: "f", Value: "$ARGOCD_APP_REVISION-$$x"}, {Name: "n.number", Value: "12"}, {Name: "n.text", Value: "12", ForceString: true},
			{Name: "n.list", Value: "{a,b}"}, {Name: "n.commas", Value: "a,b"},
		},
		FileParameters: []v1alpha1.HelmFileParameter{{Name: "motd", Path: "motd.txt"}, {Name: "g", Path: "$more/g.txt"}},
	})
	in.Refs = map[string]tree.FS{"more": tree.Map{"shop/three.yaml": []byte("ref: here"), "g.txt": []byte("file")}}
	got := field(t, render(t, in), "shop", "values")
	want := map[string]any{
		"a": "chart", "b": "one", "c": "two", "d": "object", "e": "two", "f": "abc-$x", "g": "file", "motd": "a, b\n", "own": true,
		"glob": 2.0, "first": true, "ref": "here",
		"n": map[string]any{"number": 12.0, "text": "12", "list": []any{"a", "b"}, "commas": "a,b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValuesWithoutObject(t *testing.T) {
	in := input(dump(nil), v1alpha1.ApplicationSourceHelm{
		Values: "{e: values}", ValueFiles: []string{"none.yaml", "/no/*.yaml"}, IgnoreMissingValueFiles: true,
		ReleaseName: "other", Namespace: "elsewhere",
	})
	out := render(t, in)
	if diff := cmp.Diff(map[string]any{"e": "values"}, field(t, out, "other", "values")); diff != "" {
		t.Error(diff)
	}
	if ns := out.Objects[0].GetNamespace(); ns != "elsewhere" {
		t.Errorf("namespace %s", ns)
	}
}

// TestC001 is the case of a null for a value of a sub-chart. Helm 4.3.1 itself renders variant 1 wrongly.
func TestC001(t *testing.T) {
	const block = `web: {enabled: true, probe: {httpGet: null, exec: {command: ["true"]}}}`
	base := map[string]string{
		"app/charts/web/Chart.yaml":        "{apiVersion: v2, name: web, version: 0.1.0}",
		"app/charts/web/values.yaml":       "probe: {httpGet: {path: /up, port: 8080}, periodSeconds: 5}",
		"app/charts/web/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: probe}\ndata:\n  out: {{ toJson .Values.probe | quote }}\n",
	}
	for name, chart := range map[string]string{
		"condition":      "{apiVersion: v2, name: shop, version: 0.1.0, dependencies: [{name: web, version: 0.1.0, condition: web.enabled}]}",
		"always enabled": "{apiVersion: v2, name: shop, version: 0.1.0, dependencies: [{name: web, version: 0.1.0}]}",
		"not listed":     "{apiVersion: v2, name: shop, version: 0.1.0}",
	} {
		for variant, where := range map[string]string{"chart": "app/values.yaml", "value file": "app/more.yaml", "values": "", "object": "-"} {
			files := map[string]string{"app/Chart.yaml": chart, where: block}
			for file, text := range base {
				files[file] = text
			}
			options := v1alpha1.ApplicationSourceHelm{}
			switch variant {
			case "value file":
				options.ValueFiles = []string{"more.yaml"}
			case "values":
				options.Values = block
			case "object":
				options.ValuesObject = &runtime.RawExtension{Raw: []byte(`{"web": {"enabled": true, "probe": {"httpGet": null, "exec": {"command": ["true"]}}}}`)}
			}
			got := field(t, render(t, input(files, options)), "probe", "out")
			want := map[string]any{"periodSeconds": 5.0, "exec": map[string]any{"command": []any{"true"}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, null in %s: %s", name, variant, diff)
			}
		}
	}
}

// TestNullsOfSeveralLevels checks who wins when charts above each other disagree about a null.
func TestNullsOfSeveralLevels(t *testing.T) {
	files := map[string]string{
		"app/Chart.yaml":                                "{apiVersion: v2, name: top, version: 1.0.0, dependencies: [{name: mid, version: 1.0.0, alias: m}]}",
		"app/values.yaml":                               "m: {low: {b: top, c: null}, own: null, absent: null}",
		"app/charts/mid/Chart.yaml":                     "{apiVersion: v2, name: mid, version: 1.0.0, dependencies: [{name: low, version: 1.0.0}]}",
		"app/charts/mid/values.yaml":                    "{own: mid, low: {a: null, b: null, c: mid, e: null}}",
		"app/charts/mid/charts/low/Chart.yaml":          "{apiVersion: v2, name: low, version: 1.0.0}",
		"app/charts/mid/charts/low/values.yaml":         "{a: low, b: low, c: low, d: low, e: low}",
		"app/charts/mid/charts/low/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: low}\ndata: {values: {{ omit .Values \"global\" | toJson | quote }}}\n",
		"app/charts/mid/templates/cm.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mid}\ndata: {values: {{ omit .Values \"global\" \"low\" | toJson | quote }}}\n",
		"app/charts/mid/charts/low/templates/NOTES.txt": "no object",
	}
	out := render(t, input(files, v1alpha1.ApplicationSourceHelm{Values: "m: {low: {e: user}}"}))
	if diff := cmp.Diff(map[string]any{"b": "top", "d": "low", "e": "user"}, field(t, out, "low", "values")); diff != "" {
		t.Error(diff)
	}
	// The library keeps a null that deletes nothing where the user gives something for the sub-chart.
	if diff := cmp.Diff(map[string]any{"absent": nil}, field(t, out, "mid", "values")); diff != "" {
		t.Error(diff)
	}
}

// TestC007 is the case of equal keys in a Helm template: the last wins, with a warning.
func TestC007(t *testing.T) {
	files := map[string]string{
		"app/Chart.yaml":         "{apiVersion: v2, name: dup, version: 1.0.0}",
		"app/templates/dup.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dup\n  labels: {team: red}\n  labels: {team: blue}\ndata: {k: v}\n",
	}
	out := render(t, input(files, v1alpha1.ApplicationSourceHelm{}))
	if got := out.Objects[0].GetLabels()["team"]; got != "blue" {
		t.Errorf("team = %s, want blue", got)
	}
	if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "app/templates/dup.yaml: rendered line 6") || !strings.Contains(out.Warnings[0], "labels") {
		t.Errorf("warnings %q", out.Warnings)
	}
}

func TestObjects(t *testing.T) {
	in := job.Input{Tree: open(t, "testdata/charts"), Path: "full", AppName: "x", Capabilities: job.Capabilities{KubeVersion: "v1.36.0", APIVersions: []string{"none/v1"}}}
	out := render(t, in)
	want := []string{
		"CustomResourceDefinition/things.example.dev", "CustomResourceDefinition/others.example.dev", "Namespace/namespace", "Secret/secret",
		"ConfigMap/facts", "ClusterRole/clusterrole", "Role/role", "Service/x-app", "Deployment/x-app", "Ingress/ingress", "Alpha/alpha", "Widget/widget",
		"ConfigMap/migrate-input", "Pod/check", "Job/migrate",
	}
	if diff := cmp.Diff(want, names(out)); diff != "" {
		t.Error(diff)
	}
	for _, o := range out.Objects {
		if o.GetName() == "check" && o.GetAnnotations()["helm.sh/hook"] != "test" {
			t.Error("hooks keep their annotations")
		}
		if o.GetKind() == "Deployment" && o.Origin.String() != "full/templates/deployment.yaml" {
			t.Errorf("origin %s", o.Origin)
		}
		if o.GetName() == "others.example.dev" && (o.Origin.File != "full/crds/things.yaml" || o.Origin.Line < 5) {
			t.Errorf("origin %s", o.Origin)
		}
		if o.GetName() == "facts" {
			data := o.Object["data"].(map[string]any)
			got := []any{data["kube"], data["apis"], data["install"], data["lookup"], data["host"]}
			if diff := cmp.Diff([]any{"v1.36.0 1.36", "true false true", "true false 1 Helm", "{}", ""}, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	sort.Strings(out.Warnings)
	if len(out.Warnings) != 2 || !strings.Contains(strings.Join(out.Warnings, "\n"), `full/templates/hooks.yaml: an object is left out: Helm knows no hook "crd-install"`) {
		t.Errorf("warnings %q", out.Warnings)
	}
	in.Source.Helm = &v1alpha1.ApplicationSourceHelm{SkipCrds: true, SkipTests: true, KubeVersion: "1.30", APIVersions: []string{"example.dev/v1/Thing"}}
	out = render(t, in)
	if got := len(out.Objects); got != len(want)-3 {
		t.Errorf("%d objects: %v", got, names(out))
	}
}
