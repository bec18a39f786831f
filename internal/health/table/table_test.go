package table

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
)

// state is a document of testdata: an object of one state, under a comment that says what its health is.
type state struct {
	file   string
	number int
	want   string
	text   string
	object field.Map
}

func (s state) name() string { return fmt.Sprintf("%s#%d", s.file, s.number) }

func (s state) kind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(s.object.Text("apiVersion"), s.object.Text("kind"))
}

func states(t *testing.T) []state {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no states: %v", err)
	}
	var all []state
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range strings.Split(strings.TrimPrefix(string(text), "---\n"), "\n---\n") {
			comment, body, _ := strings.Cut(doc, "\n")
			s := state{file: file, number: i + 1, want: strings.TrimPrefix(comment, "# "), text: body}
			if err := yaml.Unmarshal([]byte(body), &s.object); err != nil {
				t.Fatalf("%s: %v", s.name(), err)
			}
			all = append(all, s)
		}
	}
	return all
}

func say(health v1alpha1.HealthStatus, has bool) string {
	switch {
	case !has:
		return none
	case health.Message == "":
		return string(health.Status)
	}
	return string(health.Status) + ": " + health.Message
}

// Each state has the health that its comment says. With LOCKSTEP_UPDATE set the sentences are written anew; the status
// itself is never.
func TestStates(t *testing.T) {
	table := BuiltIn()
	update := os.Getenv("LOCKSTEP_UPDATE") != ""
	written := map[string]*strings.Builder{}
	for _, s := range states(t) {
		health, has, known := table.Of(s.kind(), s.object)
		got := say(health, has)
		if !known {
			t.Errorf("%s: no entry knows %s", s.name(), s.kind())
		}
		gotStatus, _, _ := strings.Cut(got, ":")
		wantStatus, _, _ := strings.Cut(s.want, ":")
		if gotStatus != wantStatus || !update && got != s.want {
			t.Errorf("%s: %s\n got %s\nwant %s", s.name(), s.kind().Kind, got, s.want)
		}
		if written[s.file] == nil {
			written[s.file] = &strings.Builder{}
		}
		fmt.Fprintf(written[s.file], "---\n# %s\n%s\n", got, strings.TrimSuffix(s.text, "\n"))
	}
	if update && !t.Failed() {
		for file, text := range written {
			if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Every rule of every entry decides at least one state, so that none is there untested.
func TestEveryRuleIsReached(t *testing.T) {
	table := BuiltIn()
	reached := map[*entry]map[int]bool{}
	for _, s := range states(t) {
		e := table.find(s.kind(), s.object)
		if e == nil {
			continue
		}
		if reached[e] == nil {
			reached[e] = map[int]bool{}
		}
		for i := range e.Rules {
			if _, ok := e.Rules[i].holds(s.object, e.conditions); ok {
				reached[e][i] = true
				break
			}
		}
	}
	for _, e := range table.entries {
		if reached[e] == nil {
			t.Errorf("%s %v: no state at all", e.Project, e.Kinds)
			continue
		}
		for i := range e.Rules {
			if !reached[e][i] {
				t.Errorf("%s %v: no state reaches rule %d: %s", e.Project, e.Kinds, i+1, e.Rules[i].words())
			}
		}
	}
}

// A status of an older generation is never Healthy, whatever it says.
func TestOlderStatusIsNeverHealthy(t *testing.T) {
	table, tried := BuiltIn(), 0
	for _, s := range states(t) {
		e := table.find(s.kind(), s.object)
		if e == nil || e.generation == nil || len(e.generation.values(s.object)) == 0 {
			continue
		}
		tried++
		metadata := s.object.At("metadata")
		metadata["generation"] = s.object.Count("metadata", "generation") + 1
		if health, has, _ := table.Of(s.kind(), s.object); has && health.Status != v1alpha1.HealthProgressing {
			t.Errorf("%s: %s of an older generation is %s", s.name(), s.kind().Kind, health.Status)
		}
	}
	if tried < 30 {
		t.Errorf("only %d states say their generation", tried)
	}
}

// No status, however broken, panics or passes for Healthy where rules ask for something.
func TestBrokenStatus(t *testing.T) {
	table := BuiltIn()
	for _, e := range table.entries {
		if e.Otherwise.Health != "" {
			continue
		}
		kind, group, _ := strings.Cut(strings.ReplaceAll(e.Kinds[0], "*", "x"), ".")
		for _, status := range []any{nil, "x", []any{1}, map[string]any{"conditions": "x", "phase": []any{map[string]any{}}, "state": map[string]any{}}, map[string]any{"conditions": []any{"x", 3, map[string]any{"type": 1}}}} {
			object := field.Map{"metadata": map[string]any{"generation": int64(1)}, "status": status}
			health, has, known := table.Of(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, object)
			if known && has && health.Status == v1alpha1.HealthHealthy {
				t.Errorf("%s %s with status %v is Healthy", e.Project, e.Kinds[0], status)
			}
		}
	}
}

func TestBuiltInCanBeRead(t *testing.T) {
	if _, err := builtIn(); err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, e := range BuiltIn().entries {
		if e.Source == "" || e.Project == "" {
			t.Errorf("line %d: %v names no project or no source", e.line, e.Kinds)
		}
		if len(e.Rules) > 0 {
			kinds += len(e.Kinds)
		}
	}
	if kinds < 250 {
		t.Errorf("%d names of kinds have rules", kinds)
	}
}
