package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// columns of the table.
func columns() []string {
	return []string{"measure", "lockstep", "floor", "ratio", "target", "verdict", "later target", "verdict"}
}

func (m Measure) cells() []string {
	ratio := "–"
	if r, ok := m.Ratio(); ok {
		ratio = fmt.Sprintf("%.2f ×", r)
	}
	value := number(m.Value, m.Unit)
	if m.Value == nil {
		value = string(NotYet)
	}
	return []string{
		m.Name, value, number(m.Floor, m.Unit), ratio,
		m.Target.String(m.Unit), string(m.Against(m.Target)), m.Later.String(m.Unit), string(m.Against(m.Later)),
	}
}

func (r Report) rows() [][]string {
	rows := [][]string{columns()}
	for _, m := range r.Measures {
		rows = append(rows, m.cells())
	}
	return rows
}

// Table writes the table for a terminal, and the notes below.
func (r Report) Table(w io.Writer) error {
	rows := r.rows()
	width := make([]int, len(columns()))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			// Numbers are read from their right end.
			if i >= 1 && i <= 3 {
				cell = pad + cell
			} else if i < len(row)-1 {
				cell += pad
			}
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString("  ")
			}
		}
		b.WriteByte('\n')
		if n == 0 {
			for i := range row {
				b.WriteString(strings.Repeat("─", width[i]))
				if i < len(row)-1 {
					b.WriteString("  ")
				}
			}
			b.WriteByte('\n')
		}
	}
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) notes() []string {
	var notes []string
	for _, m := range r.Measures {
		if m.Note != "" {
			notes = append(notes, m.Name+": "+m.Note)
		}
	}
	return append(notes, r.Notes...)
}

// Markdown writes the section of a page: where and how, the table, the notes.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	commit := r.Commit
	if r.Dirty {
		commit += ", with changed files"
	}
	fmt.Fprintf(&b, "%s, commit %s, %d cores, %d MB memory, %s, %s.\n\n", r.Date.UTC().Format("2006-01-02 15:04 UTC"), commit,
		r.Machine.Cores, r.Machine.Memory>>20, r.Machine.System, r.Machine.Go)
	fmt.Fprintf(&b, "`%s`: %d applications × %d objects (%s), rounds: %d.\n\n", r.Command, r.Applications, len(r.Objects),
		strings.Join(r.Objects, ", "), r.Rounds)
	for n, row := range r.rows() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if n == 0 {
			b.WriteString("|---|--:|--:|--:|---|---|---|---|\n")
		}
	}
	if notes := r.notes(); len(notes) > 0 {
		b.WriteByte('\n')
		for _, note := range notes {
			fmt.Fprintf(&b, "- %s\n", note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes everything, for programs.
func (r Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
