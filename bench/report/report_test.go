package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestVerdicts(t *testing.T) {
	cases := []struct {
		name         string
		value, floor *float64
		target       *Target
		want         Verdict
	}{
		{"below a limit", new(19.0), nil, &Target{Max: 20}, Met},
		{"at a limit", new(20.0), nil, &Target{Max: 20}, Met},
		{"above a limit", new(20.1), nil, &Target{Max: 20}, Missed},
		{"at a limit that must not be reached", new(1.0), nil, &Target{Max: 1, Below: true}, Missed},
		{"within the floor's multiple", new(50.0), new(20.0), &Target{Max: 2.5, OfFloor: true}, Met},
		{"beyond the floor's multiple", new(50.1), new(20.0), &Target{Max: 2.5, OfFloor: true}, Missed},
		{"no floor measured", new(50.0), nil, &Target{Max: 2.5, OfFloor: true}, NotYet},
		{"exactly", new(1.0), nil, &Target{Max: 1, Exactly: true}, Met},
		{"less than exactly", new(0.0), nil, &Target{Max: 1, Exactly: true}, Missed},
		{"not measured", nil, nil, &Target{Max: 1}, NotYet},
		{"no target", new(1.0), nil, nil, None},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := (Measure{Value: c.value, Floor: c.floor}).Against(c.target); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func sample() Report {
	return Report{
		Date: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Command: "go run ./bench", Commit: "abc1234",
		Machine:      Machine{Cores: 2, Memory: 8 << 30, System: "linux/amd64", Go: "go1.26"},
		Applications: 10, Objects: []string{"configmap"}, Rounds: 1,
		Measures: []Measure{
			{
				Name: "create → in step", Unit: "s", Value: new(44.04), Floor: new(20.0),
				Target: &Target{Max: 2.5, OfFloor: true}, Later: &Target{Max: 1.8, OfFloor: true},
			},
			{Name: "renders", Value: new(1.0), Later: &Target{Max: 1, Exactly: true}},
			{Name: "audit", Later: &Target{}, Note: "no such metric"},
		},
		Notes: []string{"nothing else ran"},
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Table(&b); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
measure           lockstep   floor   ratio  target         verdict  later target   verdict
────────────────  ────────  ──────  ──────  ─────────────  ───────  ─────────────  ───────
create → in step    44.0 s  20.0 s  2.20 ×  ≤ 2.5 × floor  met      ≤ 1.8 × floor  missed
renders                  1       –       –  –              –        = 1            met
audit              not yet       –       –  –              –        ≤ 0            not yet
audit: no such metric
nothing else ran
`, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestMissedCountsWhatHoldsNow(t *testing.T) {
	r := sample()
	if got := r.Missed(); len(got) != 0 {
		t.Errorf("missed %v", got)
	}
	r.Measures[0].Value = new(51.0)
	if diff := cmp.Diff([]string{"create → in step"}, r.Missed()); diff != "" {
		t.Error(diff)
	}
	r.Measures[0].Value = nil
	if len(r.Missed()) != 1 {
		t.Error("a measure that could not be taken is no miss")
	}
}

func TestJSONAndMarkdownHoldEverything(t *testing.T) {
	var b bytes.Buffer
	if err := sample().JSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), back); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if err := sample().Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"2026-03-04", "abc1234", "2 cores", "8192 MB", "`go run ./bench`", "| 44.0 s |", "nothing else ran"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the page does not have %q:\n%s", part, b.String())
		}
	}
}
