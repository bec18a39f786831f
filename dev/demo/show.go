package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// act is one step of the demo.
type act struct {
	title string
	// limit is how long it may take; 0 is not limited.
	limit time.Duration
	// needed tells that nothing can be shown without it.
	needed bool
	run    func(ctx context.Context) error
}

// show tells what happens.
type show struct {
	out io.Writer
	// live tells that a person watches a terminal, so lines can be redrawn.
	live  bool
	width func() int
	// drawn is the number of lines that the next drawing replaces.
	drawn   int
	results []result
}

type result struct {
	title       string
	took, limit time.Duration
	err         error
}

func newShow(out io.Writer, live bool, width func() int) *show {
	return &show{out: out, live: live, width: width}
}

// play runs the acts in order. It returns how many missed their time or their point, and the error of a needed one.
func (s *show) play(ctx context.Context, slow float64, acts []act) (missed int, err error) {
	for i, a := range acts {
		fmt.Fprintf(s.out, "\n%s\n", s.bold(fmt.Sprintf("%d/%d  %s", i+1, len(acts), a.title)))
		limit := time.Duration(float64(a.limit) * slow)
		limited, cancel := ctx, context.CancelFunc(func() {})
		if limit > 0 {
			limited, cancel = context.WithTimeout(ctx, limit)
		}
		started := time.Now()
		err := a.run(limited)
		took := time.Since(started)
		if ctx.Err() != nil {
			cancel()
			return missed, context.Cause(ctx)
		}
		if err != nil && limited.Err() != nil {
			err = fmt.Errorf("not within %s: %w", limit, err)
		}
		cancel()
		s.results = append(s.results, result{a.title, took, limit, err})
		s.verdict(err, took, limit)
		if err != nil && a.needed {
			return missed, fmt.Errorf("%s: %w", strings.ToLower(a.title[:1])+a.title[1:], err)
		}
		if err != nil {
			missed++
		}
	}
	return missed, nil
}

func (s *show) verdict(err error, took, limit time.Duration) {
	switch {
	case err != nil:
		s.say("NOT DONE after %s: %v", span(took), err)
	case limit > 0:
		s.say("done in %s (may take %s)", span(took), limit)
	default:
		s.say("done in %s", span(took))
	}
}

// summary lists all acts with their times.
func (s *show) summary() {
	fmt.Fprintf(s.out, "\n%s\n", s.bold("What was shown"))
	for _, r := range s.results {
		word := "ok"
		if r.err != nil {
			word = "NOT DONE"
		}
		fmt.Fprintf(s.out, "    %-8s  %8s  %s\n", word, span(r.took), r.title)
	}
}

// say tells one thing below the title of the act.
func (s *show) say(format string, args ...any) {
	s.drawn = 0
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(s.out, "    %s\n", strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    "))
}

// draw puts lines in the place of those of the last drawing.
func (s *show) draw(lines []string) {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
	}
	width := s.width()
	for _, line := range lines {
		fmt.Fprintf(s.out, "    %s\n", cut(line, width-5))
	}
	s.drawn = len(lines)
}

func (s *show) bold(text string) string {
	if !s.live {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// cut shortens a line so that it does not wrap, which would put the next drawing in the wrong place.
func cut(line string, width int) string {
	if width < 20 {
		width = 20
	}
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

// span is a duration as people say it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
