package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/bench/plot"
	"github.com/lockstep-cd/lockstep/bench/report"
)

func result(n int, seconds, floor float64) report.Report {
	return report.Report{Applications: n, Measures: []report.Measure{
		{Name: "create → in step", Unit: "s", Value: new(seconds), Floor: new(floor)},
		{Name: "idle", Value: new(1.0)},
	}}
}

func TestCostOfOneApplication(t *testing.T) {
	var out bytes.Buffer
	err := plot.Write(&out, []report.Report{result(1000, 40, 20), result(100, 9, 2), result(100, 3, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for text, times := range map[string]int{
		"time until in step: 30 ms at 100":      1, // the last of the two runs of this size
		"time until in step: 40 ms at 1000":     1,
		"the same, of the floor: 20 ms at 1000": 1,
		"<polyline":                             2, // nothing was recorded of processor time and memory
		">100</text>":                           2, // of both axes
		"processor time":                        0,
	} {
		if n := strings.Count(out.String(), text); n != times {
			t.Errorf("%q is there %d times, not %d", text, n, times)
		}
	}
	for d := xml.NewDecoder(&out); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	if err := plot.Write(io.Discard, []report.Report{{Applications: 5}}); !errors.Is(err, plot.ErrNothing) {
		t.Errorf("got %v", err)
	}
}
