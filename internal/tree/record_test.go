package tree_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

func TestReadSetHoldsWhileAnswersAreTheSame(t *testing.T) {
	base := tree.Map{"app/a.yaml": []byte("1"), "app/b.yaml": []byte("2"), "lib/x": []byte("3")}
	view, set := tree.Record(base)
	if _, err := view.ReadDir("app"); err != nil {
		t.Fatal(err)
	}
	if _, err := view.ReadFile("app/a.yaml"); err != nil {
		t.Fatal(err)
	}
	if _, err := view.ReadFile("app/Chart.yaml"); err == nil {
		t.Fatal("want an error")
	}
	if _, err := view.Stat("app/kustomization.yaml"); err == nil {
		t.Fatal("want an error")
	}
	for name, c := range map[string]struct {
		change tree.Map
		want   bool
	}{
		"nothing":                 {nil, true},
		"another folder":          {tree.Map{"lib/x": []byte("new")}, true},
		"a file only listed":      {tree.Map{"app/b.yaml": []byte("new")}, true},
		"the file read":           {tree.Map{"app/a.yaml": []byte("new")}, false},
		"a new file in a listing": {tree.Map{"app/c.yaml": []byte("3")}, false},
		"what was absent":         {tree.Map{"app/Chart.yaml": []byte("name: x")}, false},
	} {
		if got := set.Holds(tree.Overlay(base, c.change)); got != c.want {
			t.Errorf("%s changed: holds = %v", name, got)
		}
	}
	if set.Bytes() != 1 {
		t.Errorf("read %d bytes", set.Bytes())
	}
}
