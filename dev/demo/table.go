package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/dev/internal/outside"
	"github.com/lockstep-cd/lockstep/internal/client"
)

// drawEvery bounds how often the table is drawn.
const drawEvery = 100 * time.Millisecond

// watchTable shows the applications until all names are there, in step and healthy.
func (st *stage) watchTable(ctx context.Context, names []string) error {
	told := map[string]string{}
	for {
		list, changed := st.board.Now()
		if st.show.live {
			st.show.draw(table(list))
		} else {
			st.tell(list, told)
		}
		if allFine(list, names) {
			if !st.show.live {
				st.show.draw(table(list))
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return st.notFine(names)
		case <-changed:
		}
		select { // many changes at once make one drawing
		case <-ctx.Done():
		case <-time.After(drawEvery):
		}
	}
}

// tell prints a line for each application that has another state. Why it is not healthy yet changes many times and is left
// to the table of a terminal, unless something is wrong.
func (st *stage) tell(list []*v1alpha1.Application, told map[string]string) {
	for _, app := range list {
		line := strings.Join(row(app)[:3], "  ")
		if p := outside.Problem(app); p != "" {
			line += "  " + p
		}
		if told[app.Name] != line {
			told[app.Name] = line
			st.show.say("%s", line)
		}
	}
}

func table(list []*v1alpha1.Application) []string {
	lines := []string{strings.TrimRight(strings.Join(columns("APPLICATION", "SYNC", "HEALTH", "REVISION", "OBJECTS", ""), "  "), " ")}
	for _, app := range list {
		lines = append(lines, strings.TrimRight(strings.Join(row(app), "  "), " "))
	}
	return lines
}

func columns(name, sync, health, revision, objects, cause string) []string {
	return []string{
		fmt.Sprintf("%-18s", name), fmt.Sprintf("%-9s", sync), fmt.Sprintf("%-11s", health),
		fmt.Sprintf("%-8s", revision), fmt.Sprintf("%7s", objects), cause,
	}
}

func row(app *v1alpha1.Application) []string {
	s := app.Status
	cause := ""
	if !outside.Fine(app) {
		cause = client.Cause(app)
	}
	return columns(app.Name, or(string(s.Sync.Status), "-"), or(string(s.Health.Status), "-"), short(s.Sync.Revision),
		fmt.Sprint(len(s.Resources)), cause)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func short(revision string) string {
	if len(revision) > 7 {
		return revision[:7]
	}
	return or(revision, "-")
}

func allFine(list []*v1alpha1.Application, names []string) bool {
	fine := map[string]bool{}
	for _, app := range list {
		fine[app.Name] = outside.Fine(app)
	}
	for _, name := range names {
		if !fine[name] {
			return false
		}
	}
	return true
}

// notFine is the error that says which applications are not as they should be, and why.
func (st *stage) notFine(names []string) error {
	var lines []string
	for _, name := range names {
		switch app := st.board.Get(name); {
		case app == nil:
			lines = append(lines, name+" does not exist")
		case !outside.Fine(app):
			lines = append(lines, fmt.Sprintf("%s is %s and %s: %s", name, or(string(app.Status.Sync.Status), "not compared"),
				or(string(app.Status.Health.Status), "of unknown health"), client.Cause(app)))
		}
	}
	return fmt.Errorf("not in step and healthy in time:\n%s", strings.Join(lines, "\n"))
}
