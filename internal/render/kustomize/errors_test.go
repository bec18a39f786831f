package kustomize_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

func TestErrorsNameWhatIsWrong(t *testing.T) {
	const good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, c := range map[string]struct{ archive, want string }{
		"C007 duplicate key": {
			"-- app/kustomization.yaml --\nresources: [dup.yaml]\n-- app/dup.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dup\n  labels: {team: red}\n  labels: {team: blue}\ndata: {k: v}\n",
			`app/dup.yaml:6: key "labels" stands twice in one mapping, first in line 5`,
		},
		"missing resource": {
			"-- app/kustomization.yaml --\nresources: [gone.yaml]\n",
			"app/kustomization.yaml: resources: gone.yaml is not in the source",
		},
		"missing patch": {
			"-- app/kustomization.yaml --\nresources: [a.yaml]\npatches: [{path: gone.yaml}]\n-- app/a.yaml --\n" + good,
			"app/kustomization.yaml: patches: gone.yaml is not in the source",
		},
		"missing component": {
			"-- app/kustomization.yaml --\ncomponents: [../gone]\n",
			"app/kustomization.yaml: components: ../gone is not in the source",
		},
		"file of a generator": {
			"-- app/kustomization.yaml --\nconfigMapGenerator: [{name: a, files: [k=gone.conf]}]\n",
			"app/kustomization.yaml: configMapGenerator: gone.conf is not in the source",
		},
		"no kustomization": {
			"-- app/kustomization.yaml --\nresources: [../base]\n-- base/a.yaml --\n" + good,
			"base: the folder has no kustomization.yaml, kustomization.yml or Kustomization",
		},
		"two kustomizations": {
			"-- app/kustomization.yaml --\nresources: [a.yaml]\n-- app/Kustomization --\nresources: [a.yaml]\n-- app/a.yaml --\n" + good,
			"app/Kustomization: kustomization.yaml is there as well, but a folder has one kustomization: remove one of them",
		},
		"unknown field": {
			"-- app/kustomization.yaml --\nresources: [a.yaml]\nimags: []\n-- app/a.yaml --\n" + good,
			"app/kustomization.yaml:2: field imags is not known to kustomize",
		},
		"broken kustomization": {
			"-- app/kustomization.yaml --\nresources: [a.yaml]\n  patches: x: y\n",
			"app/kustomization.yaml:1: YAML: did not find expected key",
		},
		"empty kustomization": {
			"-- app/kustomization.yaml --\n# nothing\n",
			"app/kustomization.yaml: kustomize: kustomization.yaml is empty",
		},
		"cycle": {
			"-- app/kustomization.yaml --\nresources: [../base]\n-- base/kustomization.yaml --\nresources: [../app]\n",
			"base/kustomization.yaml: app leads back to app, which is at or above a kustomization on the way to it",
		},
		"outside of its folder": {
			"-- app/kustomization.yaml --\nresources: [../a.yaml]\n-- a.yaml --\n" + good,
			"app/kustomization.yaml: resources: file ../a.yaml lies outside of the kustomization's folder, which kustomize does not allow",
		},
		"out of the source": {
			"-- app/kustomization.yaml --\nresources: [../../a]\n",
			"app/kustomization.yaml: resources: ../../a: path app/../../a: leads out of the source",
		},
		"function": {
			"-- app/kustomization.yaml --\nresources: [a.yaml]\ntransformers: [f.yaml]\n-- app/a.yaml --\n" + good +
				"-- app/f.yaml --\napiVersion: example.com/v1\nkind: Fix\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n",
			"app/kustomization.yaml: transformers: Fix f is a KRM function; functions that run programs or containers are not supported",
		},
		"plugin": {
			"-- app/kustomization.yaml --\ngenerators:\n- |\n  apiVersion: example.com/v1\n  kind: Make\n  metadata: {name: m}\n",
			"app/kustomization.yaml: generators: Make m (example.com/v1) is a plugin of its own; only kustomize's built-in generators and transformers are supported, no KRM exec or container functions",
		},
		"plugin in a folder": {
			"-- app/kustomization.yaml --\ngenerators: [gen]\n-- app/gen/kustomization.yaml --\nresources: [m.yaml]\n-- app/gen/m.yaml --\napiVersion: example.com/v1\nkind: Make\nmetadata: {name: m}\n",
			"app/kustomization.yaml: a generator or transformer is a plugin; only kustomize's built-in ones are supported, no KRM exec or container functions",
		},
		"URL in a folder of generators": {
			"-- app/kustomization.yaml --\ngenerators: [gen]\n-- app/gen/kustomization.yaml --\nresources: [m.yaml]\n-- app/gen/m.yaml --\napiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: m}\nfiles: ['http://127.0.0.1:1/x']\n",
			"app/gen/kustomization.yaml: app/gen/m.yaml: a URL is not supported in a folder of generators or transformers; put its content into the source",
		},
		"URL in a generator": {
			"-- app/kustomization.yaml --\ngenerators: [m.yaml]\n-- app/m.yaml --\napiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: m}\nname: m\nfiles: ['k=http://127.0.0.1:1/x']\n",
			"app/kustomization.yaml: generators: http://127.0.0.1:1/x: sources outside of the repository are not available here",
		},
		"URL of a transformer": {
			"-- app/kustomization.yaml --\nresources: [a.yaml]\ntransformers: ['http://127.0.0.1:1/t.yaml']\n-- app/a.yaml --\n" + good,
			"app/kustomization.yaml: transformers: http://127.0.0.1:1/t.yaml: sources outside of the repository are not available here",
		},
		"component as resource": {
			"-- app/kustomization.yaml --\nresources: [part]\n-- app/part/kustomization.yaml --\nkind: Component\n",
			"app/kustomization.yaml: kustomize: ",
		},
		"same object twice": {
			"-- app/kustomization.yaml --\nresources: [a.yaml, b.yaml]\n-- app/a.yaml --\n" + good + "-- app/b.yaml --\n" + good,
			"app/kustomization.yaml: kustomize: ",
		},
		"patch without target": {
			"-- app/kustomization.yaml --\nresources: [a.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: none}\n-- app/a.yaml --\n" + good,
			"app/kustomization.yaml: kustomize: no resource matches strategic merge patch",
		},
		"chart without renderer": {
			"-- app/kustomization.yaml --\nhelmCharts: [{name: c}]\n",
			"app/kustomization.yaml: helmCharts: chart c: charts are not rendered here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := parseArchive(c.archive)
			_, err := kustomize.Render(t.Context(), job.Input{Tree: files, Path: "app"}, nil)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error is %v\nwant %s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error has more than one line: %q", err)
			}
			if _, err := run(t, onDisk(t, files), "build", "app"); err == nil && !strings.Contains(name, "chart") {
				t.Error("the program builds this")
			}
		})
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	files := tree.Map{"kustomization.yaml": []byte("resources: [a.yaml]\n"), "a.yaml": []byte("apiVersion: v1\nkind: A\nmetadata: {name: a}\n")}
	_, err := kustomize.Render(ctx, job.Input{Tree: files, Path: "."}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	var placed *job.Error
	if !errors.As(err, &placed) || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("error is %v", err)
	}
}
