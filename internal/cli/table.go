package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// cell is one field of a table.
type cell struct {
	text string
	tone tone
}

func text(s string) cell { return cell{text: s} }

// table prints rows under a head. The first call of print fixes the widths, so that rows can be added under it.
type table struct {
	out   io.Writer
	paint paint
	// width cuts the last column; 0 does not.
	width  int
	head   []string
	widths []int
}

const gap = 3

// newTable is a table on the shell's output.
func (sh *shell) newTable(head ...string) *table {
	t := &table{out: sh.Out, paint: sh.paint, head: head}
	if sh.Terminal {
		t.width = sh.Width
	}
	return t
}

// print writes rows; the head comes first, once.
func (t *table) print(rows [][]cell) {
	if t.widths == nil {
		t.measure(rows)
		head := make([]cell, len(t.head))
		for i, h := range t.head {
			head[i] = cell{h, dim}
		}
		t.row(head)
	}
	for _, r := range rows {
		t.row(r)
	}
}

func (t *table) measure(rows [][]cell) {
	t.widths = make([]int, len(t.head))
	for i, h := range t.head {
		t.widths[i] = utf8.RuneCountInString(h)
		for _, r := range rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(oneLine(r[i].text)))
		}
	}
}

func (t *table) row(cells []cell) {
	var b strings.Builder
	used := 0
	last := len(cells) - 1
	for last > 0 && cells[last].text == "" {
		last-- // no blanks at the end of a line
	}
	for i := 0; i <= last; i++ {
		s := oneLine(cells[i].text)
		if i == len(cells)-1 && t.width > 0 {
			s = cut(s, t.width-used)
		}
		n := utf8.RuneCountInString(s)
		b.WriteString(t.paint.as(cells[i].tone, s))
		if i < last {
			pad := max(t.widths[i]-n, 0) + gap
			b.WriteString(strings.Repeat(" ", pad))
			used += n + pad
		}
	}
	fmt.Fprintln(t.out, b.String())
}

// cut shortens s to n columns, but never to less than can be read.
func cut(s string, n int) string {
	n = max(n, 12)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// oneLine makes one line of what a machine wrote, without control characters that would move the cursor.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return -1
		}
		return r
	}, strings.TrimSpace(s))
}
