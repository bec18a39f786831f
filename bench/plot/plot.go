// Package plot owns the drawing of what an application costs against how many there are: an SVG made of recorded results.
//
// It computes and writes only; it may depend on report and the standard library.
package plot

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/bench/report"
)

// series is one line of the drawing: a measure of a run, divided by the number of its applications.
type series struct {
	title, unit, colour string
	// measure is the name that results are found by, scale what its unit is multiplied with.
	measure string
	scale   float64
	floor   bool
}

func all() []series {
	return []series{
		{title: "time until in step", unit: "ms", colour: "#2563eb", measure: "create → in step", scale: 1000},
		{title: "the same, of the floor", unit: "ms", colour: "#93c5fd", measure: "create → in step", scale: 1000, floor: true},
		{title: "processor time", unit: "ms", colour: "#dc2626", measure: "CPU until in step", scale: 1000},
		{title: "memory", unit: "kB", colour: "#059669", measure: "memory until in step", scale: 1024},
	}
}

// point is one result: the number of applications, and the cost of one.
type point struct {
	n    int
	cost float64
}

// points are a series' results, the fewest applications first; of several with the same number the last counts.
func (s series) points(reports []report.Report) []point {
	byN := map[int]float64{}
	for _, r := range reports {
		for _, m := range r.Measures {
			value := m.Value
			if s.floor {
				value = m.Floor
			}
			if m.Name == s.measure && value != nil && r.Applications > 0 {
				byN[r.Applications] = *value * s.scale / float64(r.Applications)
			}
		}
	}
	list := make([]point, 0, len(byN))
	for n, cost := range byN {
		list = append(list, point{n, cost})
	}
	slices.SortFunc(list, func(a, b point) int { return cmp.Compare(a.n, b.n) })
	return list
}

// ErrNothing says that the results hold nothing to draw.
var ErrNothing = errors.New("plot: no result has a measure of create → in step, CPU or memory; take --only in-step at two sizes at least")

// The drawing's measures, in pixels.
const (
	width, height       = 720, 420
	left, right         = 70, 20
	top, bottom         = 40, 110
	plotWidth           = width - left - right
	plotHeight          = height - top - bottom
	legendY, legendStep = height - 62, 18
)

// Write draws the cost of one application against their number, both on logarithmic scales.
func Write(w io.Writer, reports []report.Report) error {
	var drawn []series
	var lines [][]point
	for _, s := range all() {
		if p := s.points(reports); len(p) > 0 {
			drawn, lines = append(drawn, s), append(lines, p)
		}
	}
	if len(drawn) == 0 {
		return ErrNothing
	}
	f := frameOf(lines)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<title>Cost of one application against the number of applications</title>`+"\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15">Cost of one application against the number of applications</text>`+"\n", left)
	f.axes(&b)
	for i, s := range drawn {
		f.line(&b, s, lines[i], i)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// frame is what the axes cover, as powers of ten; numbers are those of the applications.
type frame struct {
	x0, x1, y0, y1 float64
	numbers        []int
}

func frameOf(lines [][]point) frame {
	f := frame{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1)}
	for _, line := range lines {
		for _, p := range line {
			x, y := math.Log10(float64(p.n)), math.Log10(max(p.cost, 0.01))
			f.x0, f.x1, f.y0, f.y1 = min(f.x0, x), max(f.x1, x), min(f.y0, y), max(f.y1, y)
			if !slices.Contains(f.numbers, p.n) {
				f.numbers = append(f.numbers, p.n)
			}
		}
	}
	if f.x0 == f.x1 {
		f.x0, f.x1 = f.x0-0.5, f.x1+0.5
	}
	f.y0, f.y1 = math.Floor(f.y0), math.Ceil(f.y1)
	if f.y0 == f.y1 {
		f.y1++
	}
	slices.Sort(f.numbers)
	return f
}

func (f frame) at(p point) (x, y float64) {
	x = left + plotWidth*(math.Log10(float64(p.n))-f.x0)/(f.x1-f.x0)
	y = top + plotHeight*(f.y1-math.Log10(max(p.cost, 0.01)))/(f.y1-f.y0)
	return x, y
}

// axes draws a line for each power of ten, and one below for each number of applications.
func (f frame) axes(b *strings.Builder) {
	for e := f.y0; e <= f.y1; e++ {
		y := top + plotHeight*(f.y1-e)/(f.y1-f.y0)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e5e7eb"/>`+"\n", left, y, width-right, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", left-8, y+4, math.Pow(10, e))
	}
	for _, n := range f.numbers {
		x, _ := f.at(point{n, 1})
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#9ca3af"/>`+"\n", x, top+plotHeight, x, top+plotHeight+5)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x, top+plotHeight+19, n)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">applications</text>`+"\n", left+plotWidth/2, top+plotHeight+36)
}

// line draws one series with its values, and its place in the legend.
func (f frame) line(b *strings.Builder, s series, points []point, i int) {
	var path []string
	for _, p := range points {
		x, y := f.at(p)
		path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %.3g %s at %d</title></circle>`+"\n", x, y, s.colour, s.title, p.cost, s.unit, p.n)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), s.colour)
	x, y := left+(i%2)*plotWidth/2, legendY+(i/2)*legendStep+16
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/>`+"\n", x, y-9, s.colour)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s, %s for one application</text>`+"\n", x+16, y, s.title, s.unit)
}
