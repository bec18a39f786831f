package kustomize_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/kustomize"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// sources answers for locators by their text, and notes what was asked for.
type sources struct {
	trees map[string]tree.FS
	asked []string
}

func (s *sources) Fetch(_ context.Context, l job.Locator) (tree.FS, error) {
	s.asked = append(s.asked, l.String())
	if f, ok := s.trees[l.String()]; ok {
		return f, nil
	}
	return nil, fmt.Errorf("%s is not permitted in project shop", l)
}

func TestParseRemote(t *testing.T) {
	for in, want := range map[string]string{
		"https://github.com/org/repo":                         "https://github.com/org/repo . ",
		"https://github.com/org/repo//a/b?ref=v1":             "https://github.com/org/repo a/b v1",
		"https://github.com/org/repo/a/b?ref=v1&timeout=90s":  "https://github.com/org/repo a/b v1",
		"github.com/org/repo/a?version=v2":                    "https://github.com/org/repo a v2",
		"github.com/org/repo//a?ref=x&submodules=false":       "https://github.com/org/repo a x",
		"GitHub.com/org/repo.git/a":                           "https://github.com/org/repo.git a ",
		"github.com:org/repo.git":                             "https://github.com/org/repo.git . ",
		"git@github.com:org/repo.git//a?ref=v1":               "git@github.com:org/repo.git a v1",
		"git::https://gitlab.example/group/sub/repo.git//a":   "https://gitlab.example/group/sub/repo.git a ",
		"git::ssh://git@host.example:22/group/repo.git/a/b":   "ssh://git@host.example:22/group/repo.git a/b ",
		"ssh://git@github.com/org/repo//a?ref=main":           "git@github.com:org/repo a main",
		"user@host.example:path/to/repo.git//dir":             "user@host.example:path/to/repo.git dir ",
		"https://user@dev.azure.com/o/p/_git/repo/a/b?ref=r":  "https://user@dev.azure.com/o/p/_git/repo a/b r",
		"https://bitbucket.example/scm/proj/repo.git?ref=tag": "https://bitbucket.example/scm/proj/repo.git . tag",
		"file:///srv/repo":                                    "file:///srv/repo . ",
		"file:///srv/repo//a?ref=v1":                          "file:///srv/repo a v1",
		"../base":                                             "local",
		"base":                                                "local",
		"a/b/c.yaml":                                          "local",
		"/abs/path":                                           "local",
		"host.example/org/repo":                               "local",
		"https://github.com/org":                              "local",
		"github.com/org/repo//../../x":                        "local",
	} {
		url, dir, ref, ok := kustomize.ParseRemote(in)
		got := url + " " + dir + " " + ref
		if !ok {
			got = "local"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// repository makes a git repository of files, with a tag, for the program to clone.
func repository(t *testing.T, files tree.Map, tag string) string {
	t.Helper()
	dir := onDisk(t, files)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "all"}, {"tag", tag},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}
	return dir
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"

func TestRemotesEqualTheProgram(t *testing.T) {
	far := tree.Map{
		"deep/overlay/kustomization.yaml": []byte("resources: [../base, own.yaml]\nnamePrefix: far-\n"),
		"deep/overlay/own.yaml":           fmt.Appendf(nil, configMap, "own"),
		"deep/base/kustomization.yaml":    []byte("resources: [cm.yaml]\nconfigMapGenerator:\n- {name: made, literals: [a=b]}\n"),
		"deep/base/cm.yaml":               fmt.Appendf(nil, configMap, "base"),
		"part/kustomization.yaml":         []byte("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {part: far}\n"),
	}
	dir := repository(t, far, "v1")
	web := tree.Map{
		"resources.yaml": fmt.Appendf(nil, configMap, "from-web"),
		"patch.yaml":     []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: near}\ndata: {patched: web}\n"),
		"settings.conf":  []byte("x = y\n"),
		"values.env":     []byte("A=1\n"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if data, ok := web[strings.TrimPrefix(r.URL.Path, "/some/where/")]; ok {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	base := server.URL + "/some/where/"
	near := tree.Map{
		"app/kustomization.yaml": fmt.Appendf(nil, `resources:
- file://%[1]s//deep/overlay?ref=v1
- near.yaml
- %[2]sresources.yaml
components: ["file://%[1]s//part?ref=v1"]
patches: [{path: "%[2]spatch.yaml"}]
configMapGenerator:
- name: web
  files: ["%[2]ssettings.conf", "k=%[2]ssettings.conf"]
  envs: ["%[2]svalues.env"]
buildMetadata: [originAnnotations, transformerAnnotations]
`, dir, base),
		"app/near.yaml": fmt.Appendf(nil, configMap, "near"),
	}
	s := &sources{trees: map[string]tree.FS{"repository file://" + dir + " at v1": far}}
	for name, data := range web {
		s.trees[base+name] = tree.Map{"resource": data}
	}
	want, err := run(t, onDisk(t, near), "build", "app")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := kustomize.Build(t.Context(), job.Input{Tree: near, Path: "app", Fetch: s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if len(s.asked) != 5 {
		t.Errorf("asked for %q, want each of the five once", s.asked)
	}
}

func TestRemoteErrors(t *testing.T) {
	leaving := tree.Map{"base/kustomization.yaml": []byte("resources: [../../app]\n")}
	turning := tree.Map{"base/kustomization.yaml": []byte("resources: ['https://git.example/t/t.git//base']\n")}
	s := &sources{trees: map[string]tree.FS{
		"repository https://git.example/l/l.git at HEAD": leaving,
		"repository https://git.example/t/t.git at HEAD": turning,
	}}
	for name, c := range map[string]struct {
		kustomization string
		fetch         job.Fetcher
		want          string
	}{
		"refused": {
			"resources: ['github.com/org/repo//base?ref=v1']\n", s,
			"app/kustomization.yaml: resources: github.com/org/repo//base?ref=v1: repository https://github.com/org/repo at v1 is not permitted in project shop",
		},
		"no fetcher": {
			"components: ['https://github.com/org/repo.git']\n", nil,
			"app/kustomization.yaml: components: https://github.com/org/repo.git: repository https://github.com/org/repo.git at HEAD: sources outside of the repository are not available here",
		},
		"missing folder": {
			"resources: ['https://git.example/l/l.git//none']\n", s,
			"app/kustomization.yaml: resources: https://git.example/l/l.git//none: repository https://git.example/l/l.git at HEAD has no folder none",
		},
		"leaving its repository": {
			"resources: ['https://git.example/l/l.git//base']\n", s,
			"https://git.example/l/l.git//base/kustomization.yaml: resources: ../../app: leads out of the source",
		},
		"turning back": {
			"resources: ['https://git.example/t/t.git//base']\n", s,
			"https://git.example/t/t.git//base/kustomization.yaml: resources: https://git.example/t/t.git//base is on the way to itself",
		},
		"credentials": {
			"resources: ['https://me:secret@git.example/p/p.git//a']\n", s,
			"app/kustomization.yaml: resources: https://git.example/p/p.git//a: repository https://git.example/p/p.git at HEAD is not permitted in project shop",
		},
		"web": {
			"resources: ['https://example.com/x.yaml']\n", s,
			"app/kustomization.yaml: resources: https://example.com/x.yaml is not permitted in project shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree.Map{"app/kustomization.yaml": []byte(c.kustomization)}
			_, _, err := kustomize.Build(t.Context(), job.Input{Tree: files, Path: "app", Fetch: c.fetch}, nil)
			if err == nil || err.Error() != c.want {
				t.Errorf("error is %v\nwant %s", err, c.want)
			}
		})
	}
}
