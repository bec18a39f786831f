// Package prom reads counters from the text that programs show at /metrics. It keeps to what the benchmark looks at:
// values with labels, no types and no histograms.
//
// It may depend on the standard library alone.
package prom

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Sample is one line of a metric.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Read gives the samples of one metric; none when the program does not show it.
func Read(text []byte, name string) ([]Sample, error) {
	var samples []Sample
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue // another metric whose name only begins the same
		}
		s, err := parse(rest)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %q: %w", name, lines.Text(), err)
		}
		samples = append(samples, s)
	}
	return samples, lines.Err()
}

func parse(rest string) (s Sample, err error) {
	if rest[0] == '{' {
		if s.Labels, rest, err = labels(rest[1:]); err != nil {
			return s, err
		}
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return s, fmt.Errorf("no value")
	}
	s.Value, err = strconv.ParseFloat(fields[0], 64)
	return s, err
}

// labels reads key="value" pairs up to the closing brace, and gives what follows it.
func labels(text string) (map[string]string, string, error) {
	l := map[string]string{}
	for {
		if rest, ok := strings.CutPrefix(text, "}"); ok {
			return l, rest, nil
		}
		key, rest, ok := strings.Cut(text, "=")
		quoted, err := strconv.QuotedPrefix(rest)
		if !ok || err != nil {
			return nil, "", fmt.Errorf("labels without end")
		}
		if l[key], err = strconv.Unquote(quoted); err != nil {
			return nil, "", err
		}
		text = strings.TrimPrefix(rest[len(quoted):], ",")
	}
}

// Sum adds the samples of a metric; ok is false when the program does not show it.
func Sum(text []byte, name string) (sum float64, ok bool, err error) {
	samples, err := Read(text, name)
	for _, s := range samples {
		sum += s.Value
	}
	return sum, len(samples) > 0, err
}
