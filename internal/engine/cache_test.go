package engine_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/rendercache"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

const canary = "s3cr3t-canary-77"

// variety is a repository with applications of each tool: a folder, a chart with made-up values and a secret, and overlays of
// a shared base.
func variety(w *world) *gitserver.Repo {
	return w.repo("variety", map[string]string{
		"plain/a.yaml":                 configMap("plain", "1"),
		"secret/a.yaml":                "apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\nstringData: {pw: " + canary + "}\n",
		"made/Chart.yaml":              "apiVersion: v2\nname: made\nversion: 0.1.0\n",
		"made/templates/s.yaml":        "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\nstringData: {pw: {{ randAlphaNum 12 }}}\n",
		"base/kustomization.yaml":      "resources: [cm.yaml]\n",
		"base/cm.yaml":                 configMap("base", "1"),
		"over/one/kustomization.yaml":  "resources: [../../base]\nnamePrefix: one-\n",
		"over/two/kustomization.yaml":  "resources: [../../base]\nnamePrefix: two-\n",
		"over/none/kustomization.yaml": "resources: [cm.yaml]\n",
		"over/none/cm.yaml":            configMap("none", "1"),
		"lib/Chart.yaml":               "apiVersion: v2\nname: lib\nversion: 0.1.0\ntype: library\n",
		"lib/templates/_l.tpl":         `{{ define "lib.value" }}v1{{ end }}`,
		"uses/Chart.yaml":              "apiVersion: v2\nname: uses\nversion: 0.1.0\ndependencies: [{name: lib, version: 0.1.0, repository: \"file://../lib\"}]\n",
		"uses/templates/cm.yaml":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: uses}\ndata: {k: {{ include \"lib.value\" . }}}\n",
	})
}

var varieties = map[string]string{ //nolint:gochecknoglobals // a table
	"plain": "plain", "secret": "secret", "made": "made", "one": "over/one", "two": "over/two", "none": "over/none", "uses": "uses",
}

func (w *world) varied(commit string) {
	w.t.Helper()
	for name := range varieties {
		w.settled(name, commit)
	}
}

func newVariety(t *testing.T) (*world, *gitserver.Repo) {
	t.Helper()
	w := newWorld(t)
	r := variety(w)
	for name, path := range varieties {
		w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: path})
	}
	w.varied("")
	return w, r
}

// idle waits until every application was looked at and nothing waits in the queue.
func (w *world) idle() {
	w.t.Helper()
	w.until("the engine at rest", func() (string, bool) {
		if err := w.engine.Settled(); err != nil {
			return err.Error(), false
		}
		q := w.engine.Queue()
		return fmt.Sprintf("%+v", q), q.Waiting+q.Active == 0
	})
}

func (w *world) versions() map[string]string {
	w.t.Helper()
	list, err := w.apps().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
	}
	return out
}

// TestRestartRendersNothing: what was rendered is known after a restart, for every tool; nothing is written, and no value of a
// Secret lies readable in the data directory.
func TestRestartRendersNothing(t *testing.T) {
	w, r := newVariety(t)
	made := func() any {
		u, err := w.resource("v1", "secrets").Get(t.Context(), "made", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(u.Object["data"], u.GetResourceVersion())
	}
	w.idle()
	before, password := w.versions(), made()
	again := func(when string) {
		t.Helper()
		w.stop()
		w.forgetRenders()
		w.start()
		w.idle()
		if got := w.versions(); !maps.Equal(got, before) {
			t.Errorf("%s: applications were written: %v, before %v", when, got, before)
		}
		if made() != password {
			t.Errorf("%s: a made-up value changed", when)
		}
	}
	again("restart")
	w.wantRendered("restart")
	w.stop()
	if found := holding(t, w.data, canary); len(found) > 0 {
		t.Errorf("the value of a Secret is readable in %v", found)
	}

	// Every entry damaged: rendered again, to the same.
	damage(t, w.data+"/renderings")
	again("damaged cache")
	w.wantRendered("damaged cache", slices.Collect(maps.Keys(varieties))...)

	// Another key, as after the loss of the Secret.
	w.renders.key = bytes.Repeat([]byte{9}, rendercache.KeySize)
	again("another key")
	w.wantRendered("another key", slices.Collect(maps.Keys(varieties))...)

	// A commit while the process is away costs who reads what it changed.
	w.stop()
	w.forgetRenders()
	sha := w.commit(r, map[string]string{"plain/a.yaml": configMap("plain", "2")})
	w.start()
	w.varied(sha)
	w.wantRendered("a commit meanwhile", "plain")
}

// holding lists the files below dir that hold text. The mirrors of the sources hold what Git holds.
func holding(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(path, filepath.Join(dir, "git")+"/") {
			return err
		}
		data, err := os.ReadFile(path)
		if tells(data, text) || tells(data, base64.StdEncoding.EncodeToString([]byte(text))) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// tells whether data holds text, as it is or packed behind a header.
func tells(data []byte, text string) bool {
	const header = 64
	for at := range min(header, len(data)) {
		unpacked, _ := io.ReadAll(flate.NewReader(bytes.NewReader(data[at:]))) // most of it is nothing packed
		if bytes.Contains(unpacked, []byte(text)) {
			return true
		}
	}
	return bytes.Contains(data, []byte(text))
}

func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.rendering")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for i, f := range files {
		if err := os.Truncate(f, int64(i*7)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewVersionRendersAgain: one application at a time, and nothing that renders the same is applied or written.
func TestNewVersionRendersAgain(t *testing.T) {
	w, _ := newVariety(t)
	w.idle()
	before := w.versions()
	w.stop()
	w.forgetRenders()
	w.renders.version = " next"
	w.start()
	w.until("all rendered by the new version", func() (string, bool) {
		got := w.rendered()
		return fmt.Sprint(got), len(got) == len(varieties)
	})
	w.idle()
	w.wantRendered("a new version", slices.Collect(maps.Keys(varieties))...)
	if w.renders.most != 1 {
		t.Errorf("%d were rendered at a time", w.renders.most)
	}
	if got := w.versions(); !maps.Equal(got, before) {
		t.Errorf("applications were written: %v, before %v", got, before)
	}
	w.stop()
	w.forgetRenders()
	w.start()
	w.idle()
	w.wantRendered("a restart of the new version")
}

// TestCommitRendersItsReaders: a shared base or library costs exactly its users; a file that nobody reads costs nobody and
// still moves the compared revision, in memory at once and in the custom resource with its turn, without an operation.
func TestCommitRendersItsReaders(t *testing.T) {
	w, r := newVariety(t)
	for _, c := range []struct {
		name  string
		files map[string]string
		who   []string
	}{
		{"the base", map[string]string{"base/cm.yaml": configMap("base", "2")}, []string{"one", "two"}},
		{"the library", map[string]string{"lib/templates/_l.tpl": `{{ define "lib.value" }}v2{{ end }}`}, []string{"uses"}},
		{"an overlay", map[string]string{"over/two/kustomization.yaml": "resources: [../../base]\nnamePrefix: two-\ncommonLabels: {a: b}\n"}, []string{"two"}},
		{"a new file in a folder", map[string]string{"plain/b.yaml": configMap("plain-b", "1")}, []string{"plain"}},
		{"an override", map[string]string{"none/x": "", "over/none/.argocd-source.yaml": "kustomize: {namePrefix: x-}\n"}, []string{"none"}},
		{"a file that nobody reads", map[string]string{"docs/README.md": "read me"}, nil},
	} {
		w.idle()
		w.forgetRenders()
		history := w.histories()
		sha := w.commit(r, c.files)
		w.until("known in memory", func() (string, bool) {
			for name := range varieties {
				if got := w.engine.Compared(w.control + "/" + w.real(name)); len(got) != 1 || got[0] != sha {
					return fmt.Sprintf("%s at %v", name, got), false
				}
			}
			return "", true
		})
		w.varied(sha)
		w.wantRendered(c.name, c.who...)
		for name, n := range w.histories() {
			want := history[name]
			if slices.Contains(c.who, strings.TrimSuffix(name, w.real(""))) {
				want++
			}
			if n != want {
				t.Errorf("%s: %s has %d deployments, want %d", c.name, name, n, want)
			}
		}
	}
}

func (w *world) histories() map[string]int {
	out := map[string]int{}
	for name := range varieties {
		out[w.real(name)] = len(w.get(name).Status.History)
	}
	return out
}

// TestRevisionAlone: how the custom resource gets to know of a commit that concerns nobody: with its turn only, and at once
// after a refresh.
func TestRevisionAlone(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.restartWith(func(o *engine.Options) { o.Now = func() time.Time { return now } }) // no turn ever comes
	r := w.repo("alone", map[string]string{"a/a.yaml": configMap("a", "1")})
	w.app("a", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "a"})
	first := w.settled("a", "")
	w.idle()
	sha := w.commit(r, map[string]string{"other": "1"})
	w.until("known in memory", func() (string, bool) {
		got := w.engine.Compared(w.control + "/" + w.real("a"))
		return fmt.Sprint(got), slices.Equal(got, []string{sha})
	})
	w.idle()
	if got := w.get("a").Status.Sync.Revision; got != first.Status.Sync.Revision {
		t.Errorf("written before its turn: %s", got)
	}
	w.patchApp("a", `{"metadata":{"annotations":{"`+engine.RefreshAnnotation+`":"normal"}}}`)
	then := w.settled("a", sha)
	if len(then.Status.History) != len(first.Status.History) || then.Status.OperationState.StartedAt != first.Status.OperationState.StartedAt {
		t.Error("a commit that concerns nobody was deployed")
	}
}

// TestNewKindRendersWhoAskedForIt: a new definition in the cluster concerns the charts that look for it, and no others.
func TestNewKindRendersWhoAskedForIt(t *testing.T) {
	w := newWorld(t)
	group := "g" + w.control[len(w.control)-8:] + ".lockstep.test"
	chart := func(name, data string) map[string]string {
		return map[string]string{
			name + "/Chart.yaml":        "apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n",
			name + "/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {k: " + data + "}\n",
		}
	}
	files := chart("asks", `{{ .Capabilities.APIVersions.Has "`+group+`/v1" | quote }}`)
	maps.Copy(files, chart("version", `{{ .Capabilities.KubeVersion.Major | quote }}`))
	files["plain/a.yaml"] = configMap("plain", "1")
	files["crd/crd.yaml"] = fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, group)
	r := w.repo("kinds", files)
	for _, name := range []string{"asks", "version", "plain"} {
		w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: name})
		w.settled(name, "")
	}
	if cm, _ := w.configMap("asks"); cm["k"] != "false" {
		t.Fatalf("asks has %v", cm)
	}
	w.idle()
	w.forgetRenders()
	w.app("crd", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "crd"})
	defer func() {
		crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		_ = w.client.Resource(crds).Delete(context.Background(), "things."+group, metav1.DeleteOptions{})
	}()
	w.settled("crd", "")
	w.app("thing", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "plain"}) // any look at all
	w.until("the chart that asked is rendered again", func() (string, bool) {
		for _, name := range []string{"asks", "version", "plain"} {
			w.patchApp(name, `{"metadata":{"annotations":{"`+engine.RefreshAnnotation+`":"normal"}}}`)
		}
		cm, _ := w.configMap("asks")
		return fmt.Sprint(cm), cm["k"] == "true"
	})
	w.idle()
	if got := w.rendered(); got["asks"] == 0 || got["version"]+got["plain"] != 0 {
		t.Errorf("rendered %v, want asks alone, besides what is new", got)
	}
}

func (w *world) restartWith(tune func(*engine.Options)) {
	w.t.Helper()
	w.stop()
	w.tune = tune
	w.start()
}

// The folder of the cache is taken away while the engine runs: it is made again with the next rendering, nothing fails, and
// only what lay in it is rendered again after a restart.
func TestTheCacheIsTakenAwayWhileItRuns(t *testing.T) {
	w := newWorld(t)
	r := w.repo("c", map[string]string{"a/cm.yaml": configMap("a", "1"), "b/cm.yaml": configMap("b", "1")})
	for _, name := range []string{"a", "b"} {
		w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: name})
		w.settled(name, "")
	}
	if err := os.RemoveAll(filepath.Join(w.data, "renderings")); err != nil {
		t.Fatal(err)
	}
	w.commit(r, map[string]string{"a/cm.yaml": configMap("a", "2")})
	w.until("the commit", func() (string, bool) {
		data, _ := w.configMap("a")
		return data["k"], data["k"] == "2"
	})
	w.settled("a", "")
	w.idle()
	if app := w.get("a"); len(app.Status.Conditions) > 0 {
		t.Errorf("conditions %v", app.Status.Conditions)
	}
	w.forgetRenders()
	w.restart(false, nil)
	w.idle()
	w.wantRendered("after a restart", "b")
}
