package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the outcome of a try-out.
type report struct {
	results   []result
	checkouts []*checkout
	// missed are URLs that were asked for and that no checkout has.
	missed []string
}

// where is the source of a subject, as a reader finds it.
func (r result) where() string {
	place := r.Repository
	if place == "" {
		place = strings.TrimPrefix(r.from.url.Path, "/") + "/" + r.Path
	}
	if h := r.Source.Helm; h != nil && (h.ValuesObject != nil || h.Values != "" || len(h.Parameters) > 0) {
		place += " with values"
	}
	return place
}

// commits lists what was taken from a checkout: the commit that is checked out, and those of other branches and tags.
func (r report) commits(c *checkout) []string {
	list := []string{c.head}
	for _, one := range r.results {
		text := one.commit + " (" + one.Ref + ")"
		if one.from == c && one.Ref != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if len(list) > 1 && !slices.ContainsFunc(r.results, func(one result) bool { return one.from == c && one.Ref == "" }) {
		list = list[1:]
	}
	return list
}

func (r result) cells() []string {
	warnings := "none"
	if len(r.warnings) > 0 {
		warnings = strings.Join(r.warnings, "; ")
	}
	return []string{
		r.Name, r.version, r.where(), fmt.Sprint(r.objects), r.sync, r.health, r.second, warnings,
		fmt.Sprintf("%.1f s", r.took.Seconds()),
	}
}

func head() []string {
	return []string{"name", "version", "from", "objects", "sync", "health", "second sync", "warnings", "time"}
}

// table prints for a terminal.
func (r report) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(head(), "\t")))
	for _, one := range r.results {
		if one.err == nil {
			fmt.Fprintln(t, strings.Join(one.cells(), "\t"))
		}
	}
	_ = t.Flush() // an output that is gone is nobody's concern
	r.failures(w, func(one result) {
		fmt.Fprintf(w, "  %s %s (%s): %s\n", one.Name, one.version, one.where(), one.reason())
	})
	if len(r.missed) > 0 {
		fmt.Fprintf(w, "\nAsked for and in no checkout:\n  %s\n", strings.Join(r.missed, "\n  "))
	}
}

// reason is why a subject is not in step.
func (r result) reason() string {
	return strings.Join(append([]string{r.err.Error()}, r.warnings...), "; ")
}

// failures visits what is not in step.
func (r report) failures(w io.Writer, visit func(result)) {
	first := true
	for _, one := range r.results {
		if one.err == nil {
			continue
		}
		if first {
			fmt.Fprintln(w, "\nNot in step, or not to be assembled from the checkouts:")
			fmt.Fprintln(w)
			first = false
		}
		visit(one)
	}
}

// markdown prints the section for docs/compatibility.md.
func (r report) markdown(w io.Writer) {
	fmt.Fprintf(w, "## Tried out\n\n")
	fmt.Fprintf(w, "Public repositories, deployed to the local cluster by `dev/tryout` on %s, from these commits:\n\n", time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintln(w, "| Repository | Commit |")
	fmt.Fprintln(w, "|---|---|")
	for _, c := range r.checkouts {
		fmt.Fprintf(w, "| %s | %s |\n", c.url, strings.Join(r.commits(c), ", "))
	}
	fmt.Fprint(w, "\nCharts are packaged from these sources and served under the URL that they are published at; what `dev/tryout/public.yaml`\n"+
		"says of versions and values holds. The time is from the creation of the application until it is Synced and Healthy. A second\n"+
		"sync after a look without caches must write nothing.\n")
	fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(head(), " | "), strings.Repeat("---|", len(head())))
	for _, one := range r.results {
		if one.err == nil {
			fmt.Fprintf(w, "| %s |\n", strings.Join(escaped(one.cells()), " | "))
		}
	}
	r.failures(w, func(one result) {
		fmt.Fprintf(w, "- %s %s (%s): %s\n", one.Name, one.version, one.where(), one.reason())
	})
}

func escaped(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", `\|`), "\n", " ")
	}
	return out
}

// verdict is an error when a second sync changed something: what could not be deployed is listed and no mistake.
func (r report) verdict() error {
	var changed []string
	for _, one := range r.results {
		if one.err == nil && one.second != noDifference {
			changed = append(changed, one.Name)
		}
	}
	if len(changed) > 0 {
		return fmt.Errorf("a second sync did something: %s", strings.Join(changed, ", "))
	}
	return nil
}
