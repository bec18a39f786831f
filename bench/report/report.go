// Package report owns what the benchmark says at its end: measures with their targets, as a table, as JSON and as a page.
//
// It computes and writes values only and may depend on the standard library alone.
package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Verdict is what a measure is worth against a target.
type Verdict string

// The verdicts.
const (
	Met    Verdict = "met"
	Missed Verdict = "missed"
	// NotYet is for a measure that could not be taken.
	NotYet Verdict = "not yet"
	// None is for a measure without a target.
	None Verdict = "–"
)

// Target is an upper limit.
type Target struct {
	// Max is in the measure's unit, or a multiple of the floor.
	Max float64 `json:"max"`
	// OfFloor tells that Max is a multiple of the floor.
	OfFloor bool `json:"ofFloor,omitempty"`
	// Below tells that Max itself is too much.
	Below bool `json:"below,omitempty"`
	// Exactly tells that less is wrong, too.
	Exactly bool `json:"exactly,omitempty"`
}

// Measure is one line.
type Measure struct {
	Name string `json:"name"`
	// Unit of the values: s, ms, MB, %, or empty for counts.
	Unit string `json:"unit,omitempty"`
	// Value is Lockstep's; nil when it could not be taken, and Note says why.
	Value *float64 `json:"value"`
	// Floor is the floor's; nil for what a floor has not.
	Floor *float64 `json:"floor,omitempty"`
	// Target holds now, Later is that of the finished product.
	Target *Target `json:"target,omitempty"`
	Later  *Target `json:"later,omitempty"`
	Note   string  `json:"note,omitempty"`
}

// Ratio is the value in multiples of the floor.
func (m Measure) Ratio() (float64, bool) {
	if m.Value == nil || m.Floor == nil || *m.Floor <= 0 {
		return 0, false
	}
	return *m.Value / *m.Floor, true
}

// Against judges the measure by a target.
func (m Measure) Against(t *Target) Verdict {
	if t == nil {
		return None
	}
	if m.Value == nil {
		return NotYet
	}
	v := *m.Value
	if t.OfFloor {
		ratio, ok := m.Ratio()
		if !ok {
			return NotYet
		}
		v = ratio
	}
	// What is shown decides: a ratio of 2.5004 is shown, and meant, as 2.50.
	v = math.Round(v*1000) / 1000
	switch {
	case t.Exactly && v == t.Max, !t.Exactly && v < t.Max, !t.Exactly && !t.Below && v == t.Max:
		return Met
	}
	return Missed
}

// String is the target as people write it; unit is that of the measure.
func (t *Target) String(unit string) string {
	if t == nil {
		return "–"
	}
	sign := "≤"
	switch {
	case t.Exactly:
		sign = "="
	case t.Below:
		sign = "<"
	}
	if t.OfFloor {
		return fmt.Sprintf("%s %s × floor", sign, strconv.FormatFloat(t.Max, 'f', -1, 64))
	}
	return fmt.Sprintf("%s %s", sign, withUnit(strconv.FormatFloat(t.Max, 'f', -1, 64), unit))
}

func number(v *float64, unit string) string {
	if v == nil {
		return "–"
	}
	digits := 0
	switch {
	case unit == "":
		if *v != math.Trunc(*v) {
			digits = 2
		}
	case *v < 10:
		digits = 2
	case *v < 100:
		digits = 1
	}
	return withUnit(strconv.FormatFloat(*v, 'f', digits, 64), unit)
}

func withUnit(text, unit string) string {
	if unit == "" {
		return text
	}
	return text + " " + unit
}

// Machine is where it was measured.
type Machine struct {
	Cores  int    `json:"cores"`
	Memory int64  `json:"memory"`
	System string `json:"system"`
	Go     string `json:"go"`
}

// Report is one run of the benchmark.
type Report struct {
	Date    time.Time `json:"date"`
	Command string    `json:"command"`
	// Commit of the repository; Dirty tells that files had been changed since.
	Commit  string  `json:"commit"`
	Dirty   bool    `json:"dirty"`
	Machine Machine `json:"machine"`
	// Applications and Objects, an application's, say what was deployed.
	Applications int       `json:"applications"`
	Objects      []string  `json:"objects"`
	Rounds       int       `json:"rounds"`
	Measures     []Measure `json:"measures"`
	// Notes are facts about the run that a reader of the numbers should know.
	Notes []string `json:"notes,omitempty"`
}

// Missed are the names of the measures that miss the target that holds now, or could not be taken.
func (r Report) Missed() []string {
	var names []string
	for _, m := range r.Measures {
		switch m.Against(m.Target) {
		case Missed, NotYet:
			names = append(names, m.Name)
		}
	}
	return names
}
