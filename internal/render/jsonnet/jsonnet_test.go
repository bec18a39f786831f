package jsonnet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/jsonnet"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

const object = `{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: '%s'}}`

func named(name string) string { return strings.ReplaceAll(object, "%s", name) }

func TestC009LibrariesAndArguments(t *testing.T) {
	files := tree.Map{
		"liba/x.libsonnet": []byte("'A'"),
		"libb/x.libsonnet": []byte("'B'"),
		"app/main.jsonnet": []byte(`function(replicas, tag) [
  {apiVersion:'v1',kind:'ConfigMap',metadata:{name:'j1'},data:{lib: import 'x.libsonnet', tag: tag, r: std.toString(replicas + 1)}},
  {apiVersion:'v1',kind:'ConfigMap',metadata:{name:'j2'},data:{}} ]`),
	}
	o := jsonnet.Options{Tree: files, Dir: "app", Jsonnet: v1alpha1.ApplicationSourceJsonnet{
		Libs: []string{"liba", "libb"},
		TLAs: []v1alpha1.JsonnetVar{{Name: "replicas", Value: "3", Code: true}, {Name: "tag", Value: "1.20"}},
	}}
	objects, warnings, err := jsonnet.Render(t.Context(), "app/main.jsonnet", o)
	if err != nil || len(objects) != 2 || len(warnings) != 0 {
		t.Fatalf("%d objects, warnings %q, %v", len(objects), warnings, err)
	}
	want := map[string]any{"lib": "B", "tag": "1.20", "r": "4"}
	if diff := cmp.Diff(want, objects[0].Object["data"]); diff != "" {
		t.Error(diff)
	}
	if objects[1].GetName() != "j2" || objects[1].Origin.String() != "app/main.jsonnet" {
		t.Errorf("second object is %s from %s", objects[1].GetName(), objects[1].Origin)
	}
}

func TestResults(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"object":        {named("a"), []string{"a"}},
		"list":          {"[" + named("a") + "," + named("b") + "]", []string{"a", "b"}},
		"lists in list": {"[[" + named("a") + ", null], [], [[" + named("b") + "]]]", []string{"a", "b"}},
		"List":          {"[{apiVersion: 'v1', kind: 'List', items: [" + named("a") + "]}, " + named("b") + "]", []string{"a", "b"}},
		"null":          {"null", nil},
		"from variable": {"{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: std.extVar('app')}, n: std.extVar('n') * 2}", []string{"shop"}},
		"import below":  {"import 'sub/deep.libsonnet'", []string{"deep"}},
		"app folder":    {"(import 'sub/up.libsonnet')", []string{"from-app"}},
		"importstr":     {"std.parseJson(importstr 'sub/x.json')", []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree.Map{
				"app/main.jsonnet": []byte(c.text), "app/sub/deep.libsonnet": []byte("import 'next.libsonnet'"),
				"app/sub/next.libsonnet": []byte(named("deep")), "app/sub/up.libsonnet": []byte("import 'beside.libsonnet'"),
				"app/beside.libsonnet": []byte(named("from-app")), "app/sub/x.json": []byte(`{"apiVersion":"v1","kind":"A","metadata":{"name":"x"}}`),
			}
			o := jsonnet.Options{Tree: files, Dir: "app", Env: func(name string) string { return map[string]string{"ARGOCD_APP_NAME": "shop"}[name] }, Jsonnet: v1alpha1.ApplicationSourceJsonnet{
				ExtVars: []v1alpha1.JsonnetVar{{Name: "app", Value: "$ARGOCD_APP_NAME"}, {Name: "n", Value: "20 + 1", Code: true}},
			}}
			objects, _, err := jsonnet.Render(t.Context(), "app/main.jsonnet", o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetName())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if name == "from variable" && objects[0].Object["n"] != int64(42) {
				t.Errorf("n is %v", objects[0].Object["n"])
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"syntax":        {"{\n  a: 1,\n  b: ,\n}", "app/main.jsonnet:3: "},
		"unknown name":  {"{\n a: nowhere }", "app/main.jsonnet:2: Unknown variable: nowhere"},
		"runtime":       {"{\n\n  a: error 'no luck' }", "app/main.jsonnet:3: no luck"},
		"in an import":  {"import 'broken.libsonnet'", "app/broken.libsonnet:2: lib broke"},
		"missing":       {"import 'gone.libsonnet'", `app/main.jsonnet:1: import "gone.libsonnet": not found in app, lib`},
		"outside":       {"import '../../etc/passwd'", `app/main.jsonnet:1: import "../../etc/passwd": leads out of the source`},
		"absolute":      {"import '/etc/passwd'", `app/main.jsonnet:1: import "/etc/passwd": an absolute path leads out of the source`},
		"text":          {"'hello'", `app/main.jsonnet: the result is "hello", neither an object nor a list of objects`},
		"not an object": {"[" + named("a") + ", 3]", "app/main.jsonnet: the result is 3, neither an object nor a list of objects"},
		"no kind":       {"{a: {}}", "app/main.jsonnet: the result holds an object that can not be used: apiVersion and kind are missing, this is no Kubernetes object"},
		"wrong label":   {"{apiVersion: 'v1', kind: 'A', metadata: {name: 'a', labels: {x: 1}}}", "app/main.jsonnet: A/a: the result holds an object that can not be used: metadata.labels.x is the number 1, not text: write it in quotes"},
		"endless":       {"local f(x) = f(x + 1) + 1; f(0)", "app/main.jsonnet:1: max stack frames exceeded"},
		"no argument":   {"function(x) x", "app/main.jsonnet: "},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree.Map{"app/main.jsonnet": []byte(c.text), "app/broken.libsonnet": []byte("{\n  a: error 'lib broke' }")}
			o := jsonnet.Options{Tree: files, Dir: "app", Jsonnet: v1alpha1.ApplicationSourceJsonnet{Libs: []string{"lib"}}}
			_, _, err := jsonnet.Render(t.Context(), "app/main.jsonnet", o)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestEvaluationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// It takes seconds, not for ever: the goroutine can not be stopped and must not outlive the tests.
	files := tree.Map{"main.jsonnet": []byte("std.foldl(function(a, b) (a + b) % 7, std.range(0, 3000000), 0)")}
	_, _, err := jsonnet.Render(ctx, "main.jsonnet", jsonnet.Options{Tree: files, Dir: "."})
	if err == nil || !strings.Contains(err.Error(), "main.jsonnet: the evaluation takes too long") {
		t.Errorf("error is %v", err)
	}
}
