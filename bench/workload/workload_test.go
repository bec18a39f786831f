package workload

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func spec() Spec {
	return Spec{
		Applications: 25, Kinds: append(DefaultKinds(), "configmap"), Namespaces: 20, ControlNamespace: "argocd",
		RepoURL: "http://127.0.0.1/bench.git", Revision: strings.Repeat("a", 40),
	}
}

func TestNamesAreReversible(t *testing.T) {
	s := spec()
	for i := range s.Applications {
		if got, ok := s.Index(s.Name(i)); !ok || got != i {
			t.Errorf("Index(%q) = %d, %v", s.Name(i), got, ok)
		}
	}
	for _, name := range []string{"default", "app-00025", "app-1", "app-00001x", ""} {
		if i, ok := s.Index(name); ok {
			t.Errorf("Index(%q) = %d, want none", name, i)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := spec().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Spec){
		"no applications": func(s *Spec) { s.Applications = 0 },
		"no namespace":    func(s *Spec) { s.Namespaces = 0 },
		"no kinds":        func(s *Spec) { s.Kinds = nil },
		"unknown kind":    func(s *Spec) { s.Kinds = []string{"pod"} },
		"a kind twice":    func(s *Spec) { s.Kinds = []string{"service", "service"} },
	} {
		s := spec()
		change(&s)
		if err := s.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A live object holds what its manifest declares in spite of defaults, and no longer after the change by hand.
func TestContent(t *testing.T) {
	s := spec()
	objects, err := s.Objects(3, FirstVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		wanted, err := s.Wanted(3, o)
		if err != nil {
			t.Fatal(err)
		}
		live := decode(t, o.Content)
		live["metadata"].(map[string]any)["namespace"] = s.Namespace(3)
		live["metadata"].(map[string]any)["uid"] = "1"
		if spec, ok := live["spec"].(map[string]any); ok {
			spec["byDefault"] = true
		}
		if !content(t, live).Holds(wanted) {
			t.Errorf("%s: an object with defaults does not hold its manifest", o.Kind.Kind)
		}
		var patch map[string]any
		if err := json.Unmarshal(o.Kind.HandChange(), &patch); err != nil {
			t.Fatal(err)
		}
		merge(live, patch)
		if content(t, live).Holds(wanted) {
			t.Errorf("%s: the change by hand changes nothing that is declared", o.Kind.Kind)
		}
	}
}

func TestVersionChangesOneFile(t *testing.T) {
	s := spec()
	before, err := s.Files(7, FirstVersion)
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Files(7, FirstVersion+1)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for name, text := range after {
		if before[name] != text {
			changed = append(changed, name)
		}
	}
	if len(changed) != 1 || changed[0] != "apps/app-00007/deployment.yaml" {
		t.Errorf("changed files %v, want the deployment's alone", changed)
	}
}

func TestRepositoryHasAFileAnObject(t *testing.T) {
	s := spec()
	files, err := s.Repository()
	if err != nil {
		t.Fatal(err)
	}
	if want := s.Applications*len(s.Kinds) + 1; len(files) != want {
		t.Errorf("%d files, want %d", len(files), want)
	}
}

// The floor must write what a real status costs; one of a few hundred bytes would make it look too good.
func TestStatusHasARealSize(t *testing.T) {
	s := spec()
	s.Kinds = DefaultKinds()
	status, err := s.Status(0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < 2000 || len(text) > 6000 {
		t.Errorf("status has %d bytes", len(text))
	}
}

func decode(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func content(t *testing.T, live map[string]any) Content {
	t.Helper()
	text, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	var c Content
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func merge(into, patch map[string]any) {
	for k, v := range patch {
		child, ok := v.(map[string]any)
		if old, isMap := into[k].(map[string]any); ok && isMap {
			merge(old, child)
			continue
		}
		into[k] = v
	}
}
