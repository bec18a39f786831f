package v1alpha1_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// compatibility is the page that says of each field what becomes of it.
const compatibility = "../../docs/compatibility.md"

// row is one line of a table of the page: what it is about, its state, and what a user gets.
type row struct {
	names       []string
	state, text string
}

// part reads all tables below the heading "## title" whose second column is a state.
func part(t *testing.T, title string) []row {
	t.Helper()
	page, err := os.ReadFile(compatibility)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## "+title+"\n")
	if !found {
		t.Fatalf("%s has no part %q", compatibility, title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var rows []row
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 3 {
			continue
		}
		r := row{state: strings.TrimSpace(cells[1]), text: strings.TrimSpace(cells[2])}
		for _, quoted := range regexp.MustCompile("`[^`]+`").FindAllString(cells[0], -1) {
			r.names = append(r.names, braces(strings.Trim(quoted, "`"))...)
		}
		if !slices.Contains([]string{"supported", "different", "not yet"}, r.state) {
			t.Errorf("%s: the state of %v is %q; it is supported, different or not yet", title, r.names, r.state)
		}
		if r.state != "supported" && r.text == "" {
			t.Errorf("%s: %v is %s, and the row does not say what a user gets instead", title, r.names, r.state)
		}
		rows = append(rows, r)
	}
	return rows
}

// braces spells a.{b,c} out as a.b and a.c.
func braces(text string) []string {
	before, rest, open := strings.Cut(text, "{")
	list, after, closed := strings.Cut(rest, "}")
	if !open || !closed {
		return []string{text}
	}
	var out []string
	for choice := range strings.SplitSeq(list, ",") {
		for _, end := range braces(after) {
			out = append(out, before+choice+end)
		}
	}
	return out
}

// fields are the paths of all fields below root as people write them, such as spec.sources[].path. A type of elsewhere has none
// of its own, nor has one of leaves, which another part of the page goes through.
func fields(path string, root reflect.Type, leaves ...reflect.Type) []string {
	for root.Kind() == reflect.Pointer || root.Kind() == reflect.Slice {
		if root.Kind() == reflect.Slice {
			path += "[]"
		}
		root = root.Elem()
	}
	ours := root.PkgPath() == reflect.TypeFor[v1alpha1.Application]().PkgPath()
	if root.Kind() != reflect.Struct || !ours || slices.Contains(leaves, root) {
		return []string{path}
	}
	var out []string
	for i := range root.NumField() {
		f := root.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			out = append(out, fields(path, f.Type, leaves...)...)
			continue
		}
		out = append(out, fields(strings.TrimPrefix(path+"."+name, "."), f.Type, leaves...)...)
	}
	return out
}

// inStep holds the rows of a part against what there is: each has one row, and each row is about something. A row may also
// name the parent of fields.
func inStep(t *testing.T, rows []row, there []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rows {
		for _, name := range r.names {
			if seen[name] {
				t.Errorf("%s has two rows", name)
			}
			seen[name] = true
			if !slices.ContainsFunc(there, func(n string) bool {
				return n == name || strings.HasPrefix(n, name+".") || strings.HasPrefix(n, name+"[")
			}) {
				t.Errorf("%s has a row, and is no field", name)
			}
		}
	}
	for _, name := range there {
		if !seen[name] {
			t.Errorf("%s has no row in %s", name, compatibility)
		}
	}
}
