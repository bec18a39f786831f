package prom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = `# HELP renders Renderings.
# TYPE renders counter
renders{result="ok"} 5
renders{result="error",why="a, \"b\" } c"} 1.5e+01
renders_total 100
queue 3 1700000000
`

func TestRead(t *testing.T) {
	got, err := Read([]byte(text), "renders")
	if err != nil {
		t.Fatal(err)
	}
	want := []Sample{
		{Labels: map[string]string{"result": "ok"}, Value: 5},
		{Labels: map[string]string{"result": "error", "why": `a, "b" } c`}, Value: 15},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"x{a=\"b\" 1", "x{a 1", "x ", "x many"} {
		if _, err := Read([]byte(bad), "x"); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestSum(t *testing.T) {
	for name, want := range map[string]float64{"renders": 20, "renders_total": 100, "queue": 3} {
		if got, ok, err := Sum([]byte(text), name); got != want || !ok || err != nil {
			t.Errorf("%s: %v, %v, %v", name, got, ok, err)
		}
	}
	if _, ok, _ := Sum([]byte(text), "que"); ok {
		t.Error("the beginning of a name is no name")
	}
}
