package tree_test

import (
	"testing"

	"github.com/lockstep-cd/lockstep/internal/tree"
)

// submodules is a tree with submodules, by path and commit.
type submodules struct {
	tree.Map
	at map[string]string
}

func (s submodules) Stat(name string) (tree.Entry, error) {
	if commit, ok := s.at[name]; ok {
		return tree.Entry{Name: name, Kind: tree.Submodule, Hash: commit}, nil
	}
	return s.Map.Stat(name)
}

func TestReadsHoldWhileAnswersAreTheSame(t *testing.T) {
	base := tree.Map{"app/a.yaml": []byte("1"), "app/b.yaml": []byte("2"), "lib/x": []byte("3")}
	view, set := tree.Record(submodules{base, map[string]string{"mod": "c1", "other": "c1"}})
	if _, err := view.ReadDir("app"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app/a.yaml", "app/a.yaml"} {
		if _, err := view.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := view.ReadFile("app/Chart.yaml"); err == nil {
		t.Fatal("want an error")
	}
	if _, err := view.Stat("app/kustomization.yaml"); err == nil {
		t.Fatal("want an error")
	}
	if _, err := view.Stat("mod"); err != nil {
		t.Fatal(err)
	}
	reads := set.Reads()
	same := map[string]string{"mod": "c1", "other": "c1"}
	for name, c := range map[string]struct {
		change tree.Map
		mods   map[string]string
		want   bool
	}{
		"nothing":                 {nil, same, true},
		"another folder":          {tree.Map{"lib/x": []byte("new")}, same, true},
		"a file only listed":      {tree.Map{"app/b.yaml": []byte("new")}, same, true},
		"the file read":           {tree.Map{"app/a.yaml": []byte("new")}, same, false},
		"a new file in a listing": {tree.Map{"app/c.yaml": []byte("3")}, same, false},
		"what was absent":         {tree.Map{"app/Chart.yaml": []byte("name: x")}, same, false},
		"a submodule":             {nil, map[string]string{"mod": "c2", "other": "c1"}, false},
		"another submodule":       {nil, map[string]string{"mod": "c1", "other": "c2"}, true},
	} {
		all := tree.Map{}
		for _, m := range []tree.Map{base, c.change} {
			for k, v := range m {
				all[k] = v
			}
		}
		if got := reads.Hold(submodules{all, c.mods}); got != c.want {
			t.Errorf("%s changed: hold = %v", name, got)
		}
	}
	if len(reads) != 5 {
		t.Errorf("%d reads: %v", len(reads), reads)
	}
}

func TestChangeConcerns(t *testing.T) {
	concerns := func(c tree.Change) (list []tree.Read) {
		c.Concerns(func(op tree.ReadOp, path string) { list = append(list, tree.Read{Op: op, Path: path}) })
		return list
	}
	has := func(list []tree.Read, op tree.ReadOp, path string) bool {
		for _, r := range list {
			if r.Op == op && r.Path == path {
				return true
			}
		}
		return false
	}
	edited := concerns(tree.Change{Path: "a/b"})
	if !has(edited, tree.ReadContent, "a/b") || !has(edited, tree.ReadTarget, "a/b") || has(edited, tree.ReadNames, "a") || has(edited, tree.ReadKind, "a/b") {
		t.Errorf("an edited file concerns %v", edited)
	}
	added := concerns(tree.Change{Path: "a", Kind: true})
	if !has(added, tree.ReadContent, "a") || !has(added, tree.ReadNames, ".") || !has(added, tree.ReadKind, "a") || !has(added, tree.ReadNames, "a") {
		t.Errorf("an added file concerns %v", added)
	}
}
