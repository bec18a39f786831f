package chart

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const tool = `apiVersion: v1
entries:
  # comment
  alpine:
  - created: "2026-01-01"
    description: |
      nginx:
      - not a chart
    digest: aa
    urls:
    - alpine-1.0.0.tgz
    version: 1.0.0

  - urls: [https://h/alpine-0.9.0.tgz]
    version: 0.9.0
  "quoted":
    - version: 1.0.0
      description: "a text
        over lines"
  last:
  - version: 2.0.0
generated: "2026-01-01"
`

func TestIndexForms(t *testing.T) {
	json, err := yaml.YAMLToJSON([]byte(tool))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"lines": tool, "JSON": string(json), "Windows": strings.ReplaceAll(tool, "\n", "\r\n"),
		"entries first":  strings.Replace(tool, "apiVersion: v1\n", "", 1) + "apiVersion: v1\n",
		"no end of line": strings.Replace(tool, "generated: \"2026-01-01\"\n", "generated: x", 1),
		"wide":           strings.ReplaceAll(tool, "\n  ", "\n     "),
	} {
		x, err := parseIndex([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		charts := x.charts()
		sort.Strings(charts)
		if diff := cmp.Diff([]string{"alpine", "last", "quoted"}, charts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for chart, want := range map[string]string{"alpine": "1.0.0 0.9.0", "quoted": "1.0.0", "last": "2.0.0", "nginx": "none"} {
			got := "none"
			if entries, ok, err := x.chart(chart); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if ok {
				got = strings.Join(versionsOf(entries), " ")
			}
			if got != want {
				t.Errorf("%s: %s has %s, want %s", name, chart, got, want)
			}
		}
	}
	for name, text := range map[string]string{"empty": "", "text": "hello", "other": "a: 1", "no YAML": "a: b: c"} {
		if _, err := parseIndex([]byte(text)); err == nil {
			t.Errorf("%s is no index", name)
		}
	}
	if x, err := parseIndex([]byte("apiVersion: v1\nentries: {}\n")); err != nil || len(x.charts()) != 0 {
		t.Errorf("an index without charts: %v", err)
	}
}

// TestLargeIndex is an index of 60 MB: one chart of it must not cost the parsing of all.
func TestLargeIndex(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	for chart := 0; text.Len() < 60<<20; chart++ {
		fmt.Fprintf(&text, "  chart-%05d:\n", chart)
		for version := range 200 {
			fmt.Fprintf(&text, "  - apiVersion: v2\n    description: %s\n    digest: abc\n    urls:\n    - https://h/c.tgz\n    version: 1.%d.0\n", strings.Repeat("x", 200), version)
		}
	}
	begin := time.Now()
	x, err := parseIndex([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	entries, ok, err := x.chart("chart-00500")
	if err != nil || !ok || len(entries) != 200 {
		t.Errorf("%d versions, %v, %v", len(entries), ok, err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}
