package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// order takes everyone out of a line and names them.
func order(p *Pool, worker *process) string {
	var got []string
	for len(p.line) > 0 {
		t := p.next(worker)
		if t == nil {
			return "nobody although there is room"
		}
		name := t.project
		if t.urgent {
			name += "!"
		}
		got = append(got, name)
	}
	return strings.Join(got, " ")
}

func TestWhoseTurnItIs(t *testing.T) {
	now := time.Now()
	long := now.Add(-time.Hour)
	own := &process{project: "large", renders: 3}
	for name, tc := range map[string]struct {
		line   []*ticket
		busy   map[string]int
		worker *process
		want   string
	}{
		"the oldest of equals":               {line: []*ticket{{project: "a"}, {project: "b"}}, want: "a b"},
		"the project with less under way":    {line: []*ticket{{project: "large"}, {project: "large"}, {project: "small"}}, busy: map[string]int{"large": 1}, want: "small large large"},
		"who somebody waits for":             {line: []*ticket{{project: "a"}, {project: "large"}, {project: "large", urgent: true}}, busy: map[string]int{"large": 1}, want: "large! a large"},
		"the worker's own for a short while": {line: []*ticket{{project: "small", since: now}, {project: "large", since: now}}, worker: own, want: "large small"},
		"not for long":                       {line: []*ticket{{project: "small", since: long}, {project: "large", since: long}}, worker: own, want: "small large"},
		"and for nobody who is waited for":   {line: []*ticket{{project: "large", since: now}, {project: "small", since: now, urgent: true}}, worker: own, want: "small! large"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Pool{o: Options{Size: 4, Patience: time.Minute}, busy: tc.busy, line: tc.line}
			if diff := cmp.Diff(tc.want, order(p, tc.worker)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
