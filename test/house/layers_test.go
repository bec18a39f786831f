package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasALayer(t *testing.T) {
	for _, p := range packages(t) {
		rel := p.rel()
		if !slices.ContainsFunc([]string{"internal", "api", "cmd", "web"}, func(root string) bool { return below(rel, root) }) {
			continue
		}
		if _, ok := placeOf(rel); !ok {
			t.Errorf("%s: in no layer: add it to layers() in test/house and to docs/architecture.md", rel)
		}
	}
}

func TestImportsGoDown(t *testing.T) {
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			if complaint := againstLayers(p.rel(), to); complaint != "" {
				t.Error(complaint)
			}
		}
	}
}

func TestForbiddenArrows(t *testing.T) {
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			for _, complaint := range againstArrows(p.rel(), to) {
				t.Error(complaint)
			}
		}
	}
}

// againstLayers says what is wrong with an import, or nothing.
func againstLayers(from, importPath string) string {
	to, ours := strings.CutPrefix(importPath, module+"/")
	src, ok1 := placeOf(from)
	dst, ok2 := placeOf(to)
	if !ours || !ok1 || !ok2 || src.root == dst.root {
		return ""
	}
	all := layers()
	switch {
	case dst.layer < src.layer:
		return fmt.Sprintf("%s imports %s: %s are above %s, and imports go down", from, to, all[dst.layer].name, all[src.layer].name)
	case dst.layer == src.layer && !all[src.layer].siblings:
		return fmt.Sprintf("%s imports %s: %s do not import each other; the layer above passes values between them", from, to, all[src.layer].name)
	}
	return ""
}

func againstArrows(from, importPath string) []string {
	to := strings.TrimPrefix(importPath, module+"/")
	in := func(roots []string, rel string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return root == "" || below(rel, root) })
	}
	var complaints []string
	for _, a := range arrows() {
		if !in(a.from, from) || in(a.except, from) || in(beside(), from) {
			continue
		}
		hit := slices.ContainsFunc(a.to, func(target string) bool {
			// A name of the standard library stands for itself: net/url is no network.
			if !strings.Contains(target, ".") && importPath == to {
				return to == target
			}
			return below(to, target)
		})
		if hit {
			complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", from, to, a.reason))
		}
	}
	return complaints
}

// The rules themselves are tested, so that a slip in them does not silently allow everything.
func TestRulesCatch(t *testing.T) {
	cases := []struct {
		name, from, to string
		allowed        bool
	}{
		{"down is allowed", "internal/engine", module + "/internal/git", true},
		{"up is not", "internal/git", module + "/internal/engine", false},
		{"links are strangers", "internal/compare", module + "/internal/plan", false},
		{"a link's own parts are not", "internal/render", module + "/internal/render/helm", true},
		{"renderers share a value", "internal/render/helm", module + "/internal/render/job", true},
		{"values know no link", "internal/manifest", module + "/internal/git", false},
		{"a value inside a link's folder is a value", "internal/render/job", module + "/internal/render/helm", false},
		{"pure packages open no file", "internal/plan", "os", false},
		{"pure packages may parse URLs", "internal/project", "net/url", true},
		{"pure packages hold no client", "internal/health", "k8s.io/client-go/tools/cache", false},
		{"few hold a client", "internal/git", "k8s.io/client-go/dynamic", false},
		{"apply writes", "internal/apply", "k8s.io/client-go/dynamic", true},
		{"the command line does not import the server", "internal/cli", module + "/internal/server", false},
		{"nor does the client", "internal/client/direct", module + "/internal/server", false},
		{"the product does not import its tests", "internal/cli", module + "/test/env", false},
		{"no flags below the command line", "internal/app", "github.com/spf13/pflag", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := againstArrows(c.from, c.to)
			if s := againstLayers(c.from, c.to); s != "" {
				found = append(found, s)
			}
			if (len(found) == 0) != c.allowed {
				t.Errorf("%s -> %s: allowed %v, complaints %q", c.from, c.to, c.allowed, found)
			}
		})
	}
}
