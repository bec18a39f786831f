package helm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/helm"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

const chartYAML = "{apiVersion: v2, name: shop, version: 1.0.0}"

// depending is a Chart.yaml with one dependency.
func depending(dep string) string {
	return "{apiVersion: v2, name: shop, version: 1.0.0, dependencies: [" + dep + "]}"
}

func TestErrors(t *testing.T) {
	const schema = `{"properties": {"password": {"pattern": "^[a-z]+$"}, "port": {"type": "integer", "maximum": 9}}, "required": ["who"]}`
	for name, c := range map[string]struct {
		files   map[string]string
		options v1alpha1.ApplicationSourceHelm
		want    string
	}{
		"no chart":         {map[string]string{"app/x.yaml": "a: 1"}, v1alpha1.ApplicationSourceHelm{}, `app: there is no Chart.yaml`},
		"chart is no YAML": {map[string]string{"app/Chart.yaml": "name: x\n  y: z"}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml:2: no valid YAML: mapping values are not allowed in this context`},
		"chart v3":         {map[string]string{"app/Chart.yaml": "{apiVersion: v3, name: x, version: 1.0.0}"}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: apiVersion "v3" is none of v1 and v2`},
		"bad version":      {map[string]string{"app/Chart.yaml": "{apiVersion: v2, name: x, version: one}"}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: validation: chart.metadata.version "one" is invalid`},
		"library":          {map[string]string{"app/Chart.yaml": "{apiVersion: v2, name: x, version: 1.0.0, type: library}"}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: library charts can't be installed`},
		"kube version":     {map[string]string{"app/Chart.yaml": "{apiVersion: v2, name: x, version: 1.0.0, kubeVersion: '>=1.40'}"}, v1alpha1.ApplicationSourceHelm{KubeVersion: "1.37"}, `app/Chart.yaml: the chart needs Kubernetes >=1.40, and this is v1.37`},
		"values file":      {map[string]string{"app/Chart.yaml": chartYAML, "app/values.yaml": "a: b: c"}, v1alpha1.ApplicationSourceHelm{}, `app/values.yaml: no valid YAML: mapping values are not allowed in this context`},
		"release name":     {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{ReleaseName: "Big"}, `release name "Big": Helm wants at most 53 lower-case letters, digits, dots and dashes, with a letter or digit at both ends: set spec.source.helm.releaseName`},

		"missing value file": {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"prod.yaml"}}, `value file prod.yaml (app/prod.yaml) does not exist`},
		"value file outside": {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"../../prod.yaml"}}, `value file ../../prod.yaml: path app/../../prod.yaml: leads out of the source`},
		"value file of ref":  {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"$base/prod.yaml"}}, `value file $base/prod.yaml: no source of the application has ref "base"`},
		"value file fetched": {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"https://h/x.yaml"}}, `value file https://h/x.yaml: https://h/x.yaml: sources outside of the repository are not available here`},
		"value file list":    {map[string]string{"app/Chart.yaml": chartYAML, "app/l.yaml": "[hush]"}, v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"l.yaml"}}, `app/l.yaml: a list stands where a mapping is wanted`},
		"values text":        {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{Values: "a: 1\nb: c: d"}, `spec.source.helm.values:2: no valid YAML: mapping values are not allowed in this context`},
		"parameter":          {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{Parameters: []v1alpha1.HelmParameter{{Name: "a[x]", Value: "hush"}}}, `Helm parameter a[x]: error parsing index: strconv.Atoi: parsing "x": invalid syntax`},
		"file parameter":     {map[string]string{"app/Chart.yaml": chartYAML}, v1alpha1.ApplicationSourceHelm{FileParameters: []v1alpha1.HelmFileParameter{{Name: "a", Path: "no"}}}, `file parameter a: file no (app/no) does not exist`},

		"required":        {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: 1\nb: {{ required \"set who, please\" .Values.who }}"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/a.yaml:2: set who, please`},
		"fail below":      {map[string]string{"app/Chart.yaml": chartYAML, "app/charts/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}", "app/charts/web/templates/a.yaml": "{{ fail \"no\" }}"}, v1alpha1.ApplicationSourceHelm{}, `app/charts/web/templates/a.yaml:1: no`},
		"parse":           {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: 1\nb: {{ if }}"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/a.yaml:2: missing value for if`},
		"unknown func":    {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "{{ nope }}"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/a.yaml:1: function "nope" not defined`},
		"nil":             {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "\n\na: {{ .Values.a.b }}"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/a.yaml:3: at <.Values.a.b>: nil pointer evaluating interface {}.b`},
		"nil in helper":   {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "\na: {{ include \"x\" . }}", "app/templates/_x.tpl": "{{ define \"x\" }}\n{{ .Values.a.b }}{{ end }}"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/_x.tpl:2: at <.Values.a.b>: nil pointer evaluating interface {}.b (used at app/templates/a.yaml:2)`},
		"no template":     {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: {{ include \"x\" . }}"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/a.yaml:1: at <include "x" .>: error calling include: template: no template "x" associated with template "gotpl"`},
		"tpl":             {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: {{ tpl .Values.t . }}"}, v1alpha1.ApplicationSourceHelm{Values: "t: 'hush {{ .Values.a.b }}'"}, `app/templates/a.yaml:1: in a text given to tpl, at <.Values.a.b>: nil pointer evaluating interface {}.b`},
		"tpl parse":       {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: {{ tpl .Values.t . }}"}, v1alpha1.ApplicationSourceHelm{Values: "t: 'hush {{ if }}'"}, `app/templates/a.yaml:1: at <tpl .Values.t .>: error calling tpl: in a text given to tpl: missing value for if`},
		"range":           {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: {{ range .Values.t }}{{ end }}"}, v1alpha1.ApplicationSourceHelm{Values: "t: hush"}, `app/templates/a.yaml:1: at <.Values.t>: range can't iterate over the value`},
		"cast":            {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: {{ mustToDate \"2006\" .Values.t }}"}, v1alpha1.ApplicationSourceHelm{Values: "t: hush"}, `app/templates/a.yaml:1: at <mustToDate "2006" .Values.t>: error calling mustToDate: parsing the time value`},
		"no YAML":         {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: 1\n---\nkind: X\nb: {{ .Values.t }}: 2"}, v1alpha1.ApplicationSourceHelm{Values: "t: hush"}, `app/templates/a.yaml: renders to no valid YAML: mapping values are not allowed in this context (rendered line 2) in document 2`},
		"no object":       {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "just text"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/a.yaml: renders to something that is no object: a string stands where a mapping is wanted in document 1`},
		"no kind":         {map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "a: 1"}, v1alpha1.ApplicationSourceHelm{}, `app/templates/a.yaml: apiVersion and kind are missing, this is no Kubernetes object (rendered line 1)`},
		"chart's mapping": {map[string]string{"app/Chart.yaml": chartYAML, "app/charts/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}"}, v1alpha1.ApplicationSourceHelm{Values: "web: hush"}, `app: the value web must be a mapping, because a chart of that name gets its values from it`},

		"schema":        {map[string]string{"app/Chart.yaml": chartYAML, "app/values.schema.json": schema}, v1alpha1.ApplicationSourceHelm{Values: "{password: HUSH, port: 77}"}, `app/values.schema.json: the values of chart shop do not fit its schema: .: missing property 'who'; .password: does not match pattern ^[a-z]+$; .port: must be at most 9`},
		"schema below":  {map[string]string{"app/Chart.yaml": chartYAML, "app/charts/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}", "app/charts/web/values.schema.json": `{"properties": {"a": {"type": "integer"}}}`}, v1alpha1.ApplicationSourceHelm{Values: "{web: {a: hush}}"}, `app/charts/web/values.schema.json: the values of chart web do not fit its schema: .a: got string, want integer`},
		"schema remote": {map[string]string{"app/Chart.yaml": chartYAML, "app/values.schema.json": `{"$ref": "https://h/s.json"}`}, v1alpha1.ApplicationSourceHelm{}, `app/values.schema.json: the schema refers to https://h/s.json, and schemas of other places are not fetched: put it into the file or set spec.source.helm.skipSchemaValidation`},
		"schema file":   {map[string]string{"app/Chart.yaml": chartYAML, "app/values.schema.json": `{"$ref": "../etc/passwd"}`}, v1alpha1.ApplicationSourceHelm{}, `app/values.schema.json: the schema refers to file:///etc/passwd, and schemas of other places are not fetched: put it into the file or set spec.source.helm.skipSchemaValidation`},
		"schema broken": {map[string]string{"app/Chart.yaml": chartYAML, "app/values.schema.json": `{`}, v1alpha1.ApplicationSourceHelm{}, `app/values.schema.json: no valid JSON: unexpected EOF`},

		"dependency unnamed":  {map[string]string{"app/Chart.yaml": depending("{name: db, version: 1.x}")}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 1.x: not in charts/, and no repository is named`},
		"dependency alias":    {map[string]string{"app/Chart.yaml": depending(`{name: db, version: 1.x, repository: "@mine"}`)}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 1.x: not in charts/: chart db 1.x of @mine: sources outside of the repository are not available here; run helm dependency build and commit the charts folder`},
		"dependency unmet":    {map[string]string{"app/Chart.yaml": depending(`{name: db, version: 1.x, repository: "https://charts.example"}`)}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 1.x: not in charts/: chart db 1.x of https://charts.example: sources outside of the repository are not available here; run helm dependency build and commit the charts folder`},
		"dependency no dir":   {map[string]string{"app/Chart.yaml": depending(`{name: db, version: 1.x, repository: "file://../db"}`)}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 1.x: there is no folder db`},
		"dependency outside":  {map[string]string{"app/Chart.yaml": depending(`{name: db, version: 1.x, repository: "file://../../db"}`)}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 1.x: file://../../db: leads out of the source`},
		"dependency version":  {map[string]string{"app/Chart.yaml": depending(`{name: db, version: 1.x, repository: "file://../db"}`), "db/Chart.yaml": "{apiVersion: v2, name: db, version: 2.0.0}"}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 1.x: the chart at db has version 2.0.0`},
		"dependency circle":   {map[string]string{"app/Chart.yaml": depending(`{name: shop, version: 1.x, repository: "file://."}`)}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: the charts depend on each other in a circle`},
		"dependency lock":     {map[string]string{"app/Chart.yaml": depending(`{name: db, version: 2.x, repository: "https://charts.example"}`), "app/Chart.lock": "dependencies: [{name: db, version: 1.0.0}]"}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 2.x: the lock file has version 1.0.0: run helm dependency update`},
		"dependency unlocked": {map[string]string{"app/Chart.yaml": depending(`{name: db, version: 2.x, repository: "https://charts.example"}`), "app/Chart.lock": "dependencies: []"}, v1alpha1.ApplicationSourceHelm{}, `app/Chart.yaml: chart shop: dependency db 2.x: missing in the lock file: run helm dependency update`},
		"archive":             {map[string]string{"app/Chart.yaml": chartYAML, "app/charts/db.tgz": "no archive"}, v1alpha1.ApplicationSourceHelm{}, `app/charts/db.tgz: the chart can't be unpacked: archive: unexpected EOF`},
		"ignore rule":         {map[string]string{"app/Chart.yaml": chartYAML, "app/.helmignore": "a/**"}, v1alpha1.ApplicationSourceHelm{}, `app/.helmignore: double-star (**) syntax is not supported`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := helm.Render(context.Background(), input(c.files, c.options))
			switch {
			case err == nil:
				t.Fatalf("no error, want %s", c.want)
			case err.Error() != c.want:
				t.Errorf("\n got %s\nwant %s", err, c.want)
			case strings.Contains(strings.ToLower(err.Error()), "hush"):
				t.Error("the error shows a value")
			}
		})
	}
}

func TestTooMuch(t *testing.T) {
	files := map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": fmt.Sprintf("x: {{ repeat %d \"0123456789\" }}", job.MaxRendered/10+1)}
	_, err := helm.Render(context.Background(), input(files, v1alpha1.ApplicationSourceHelm{}))
	if err == nil || err.Error() != "app: the chart renders to more than 10 MB" {
		t.Errorf("rendered: %v", err)
	}
	files = map[string]string{"app/Chart.yaml": chartYAML, "app/big": strings.Repeat("x", job.MaxRead)}
	_, err = helm.Render(context.Background(), input(files, v1alpha1.ApplicationSourceHelm{}))
	if err == nil || !strings.HasSuffix(err.Error(), "the rendering reads more than 50 MB") {
		t.Errorf("read: %v", err)
	}
}

func TestDeadline(t *testing.T) {
	files := map[string]string{"app/Chart.yaml": chartYAML, "app/templates/a.yaml": "{{ range until 20000 }}{{ range until 1000 }}{{ end }}{{ end }}"}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := helm.Render(ctx, input(files, v1alpha1.ApplicationSourceHelm{}))
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "app: the chart was not rendered in time: context deadline exceeded" {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("returned after %s", took)
	}
}

// shelf answers for charts and files by their locators, and remembers what it was asked for.
type shelf struct {
	trees map[string]tree.FS
	asked []string
}

func (s *shelf) Fetch(_ context.Context, l job.Locator) (tree.FS, error) {
	s.asked = append(s.asked, l.String())
	if f, ok := s.trees[l.String()]; ok {
		return f, nil
	}
	return nil, fmt.Errorf("%s: nobody has it", l)
}

func TestFetchedDependencies(t *testing.T) {
	files := map[string]string{
		"app/Chart.yaml": `{apiVersion: v2, name: shop, version: 1.0.0, dependencies: [
			{name: db, version: 1.x, repository: "https://charts.example"}, {name: db, version: 1.x, repository: "https://charts.example", alias: replica},
			{name: kit, version: 0.1.0, repository: "oci://reg.example/charts"}]}`,
		"app/Chart.lock":        "dependencies: [{name: db, version: 1.4.2, repository: https://charts.example}, {name: kit, version: 0.1.0}]",
		"app/values.yaml":       "{db: {a: 1}, replica: {a: 2}}",
		"app/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ include \"kit\" . }}}\n",
	}
	s := &shelf{trees: map[string]tree.FS{
		"chart db 1.4.2 of https://charts.example": tree.Map{
			"Chart.yaml": []byte("{apiVersion: v2, name: db, version: 1.4.2}"),
			// An archive has lost what .helmignore names; nothing more is ignored.
			".helmignore":       []byte("templates/"),
			"templates/db.yaml": []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Chart.Name }}-{{ .Values.a }}}\n"),
		},
		"chart kit 0.1.0 of oci://reg.example/charts": tree.Map{
			"Chart.yaml": []byte("{apiVersion: v2, name: kit, version: 0.1.0, type: library}"), "templates/_k.tpl": []byte(`{{ define "kit" }}kit{{ end }}`),
		},
		"https://h/x.yaml": tree.Map{"resource": []byte("db: {a: 3}")},
	}}
	in := input(files, v1alpha1.ApplicationSourceHelm{ValueFiles: []string{"https://h/x.yaml"}})
	in.Fetch = s
	got := strings.Join(names(render(t, in)), " ")
	if got != "Secret/db-3 Secret/replica-2 ConfigMap/kit" {
		t.Errorf("objects: %s", got)
	}
	if len(s.asked) != 3 {
		t.Errorf("asked %q", s.asked)
	}
	delete(s.trees, "chart db 1.4.2 of https://charts.example")
	_, err := helm.Render(context.Background(), in)
	if want := "app/Chart.yaml: chart shop: dependency db 1.x: not in charts/: chart db 1.4.2 of https://charts.example: nobody has it"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
