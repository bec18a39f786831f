package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// applicationList is the answer to a question for applications.
type applicationList struct {
	Metadata metav1.ListMeta         `json:"metadata"`
	Items    []*v1alpha1.Application `json:"items"`
	// Counts are those of all that match, whatever the page; only where they are asked for.
	Counts *counts `json:"counts,omitempty"`
}

// counts say how many applications there are of what.
type counts struct {
	Total    int            `json:"total"`
	Sync     map[string]int `json:"sync"`
	Health   map[string]int `json:"health"`
	Projects map[string]int `json:"projects"`
}

// maxPage bounds a page.
const maxPage = 1000

func listParams() []param {
	return params(
		"name: of one application", "project: one or more projects", "projects: as project",
		"selector: a label selector", "repo: the URL of a source, to the letter", "appNamespace: the namespace they live in",
		"refresh: is accepted for one name only", "resourceVersion: is accepted",
		"search: words that all occur in name, project, sources, destination, labels or images",
		"sync: one or more sync states", "health: one or more health states", "cluster: URL or name of the destination",
		"namespace: of the destination", "sort: name, project, health, sync, created or synced; with - in front descending",
		"limit: applications on a page, up to 1000", "continue: what the page before said in metadata.continue",
		"counts: true counts all that match by project, sync and health",
	)
}

// filter is what a list was asked for.
type filter struct {
	name, repo, cluster, namespace string
	projects, sync, health         []string
	words                          []string
	labels                         labels.Selector
}

func (c *call) filter() (filter, error) {
	q := c.query
	f := filter{
		name: q.Get("name"), repo: q.Get("repo"), cluster: q.Get("cluster"), namespace: q.Get("namespace"),
		projects: slices.Concat(q["project"], q["projects"]), sync: q["sync"], health: q["health"],
		words: strings.Fields(strings.ToLower(q.Get("search"))), labels: labels.Everything(),
	}
	if text := q.Get("selector"); text != "" {
		var err error
		if f.labels, err = labels.Parse(text); err != nil {
			return f, invalid("selector: %s", shorten(err.Error()))
		}
	}
	return f, nil
}

// takes tells whether an application matches.
func (f *filter) takes(app *v1alpha1.Application) bool {
	switch {
	case f.name != "" && app.Name != f.name,
		len(f.projects) > 0 && !slices.Contains(f.projects, projectOf(app)),
		f.repo != "" && !slices.ContainsFunc(sourcesOf(app), func(s v1alpha1.ApplicationSource) bool { return s.RepoURL == f.repo }),
		f.cluster != "" && app.Spec.Destination.Server != f.cluster && app.Spec.Destination.Name != f.cluster,
		f.namespace != "" && app.Spec.Destination.Namespace != f.namespace,
		len(f.sync) > 0 && !slices.Contains(f.sync, string(syncOf(app))),
		len(f.health) > 0 && !slices.Contains(f.health, string(healthOf(app))),
		!f.labels.Matches(labels.Set(app.Labels)):
		return false
	}
	return f.said(app)
}

// said tells whether all words occur.
func (f *filter) said(app *v1alpha1.Application) bool {
	if len(f.words) == 0 {
		return true
	}
	texts := []string{app.Name, projectOf(app), app.Spec.Destination.Server, app.Spec.Destination.Name, app.Spec.Destination.Namespace, string(syncOf(app)), string(healthOf(app))}
	for _, s := range sourcesOf(app) {
		texts = append(texts, s.RepoURL, s.Path, s.Chart, s.TargetRevision)
	}
	for k, v := range app.Labels {
		texts = append(texts, k+"="+v)
	}
	all := strings.ToLower(strings.Join(append(texts, app.Status.Summary.Images...), "\n"))
	return !slices.ContainsFunc(f.words, func(w string) bool { return !strings.Contains(all, w) })
}

func sourcesOf(app *v1alpha1.Application) []v1alpha1.ApplicationSource {
	switch {
	case len(app.Spec.Sources) > 0:
		return app.Spec.Sources
	case app.Spec.Source != nil:
		return []v1alpha1.ApplicationSource{*app.Spec.Source}
	case app.Spec.SourceHydrator != nil:
		return []v1alpha1.ApplicationSource{{RepoURL: app.Spec.SourceHydrator.DrySource.RepoURL, Path: app.Spec.SourceHydrator.DrySource.Path}}
	}
	return nil
}

func syncOf(app *v1alpha1.Application) v1alpha1.SyncStatusCode {
	return cmp.Or(app.Status.Sync.Status, v1alpha1.SyncUnknown)
}

func healthOf(app *v1alpha1.Application) v1alpha1.HealthStatusCode {
	return cmp.Or(app.Status.Health.Status, v1alpha1.HealthUnknown)
}

// order is how a list is sorted: by a text of each application, then by name.
type order struct {
	by   string
	desc bool
	of   func(*v1alpha1.Application) string
}

func orderOf(text string) (order, error) {
	by, desc := strings.CutPrefix(text, "-")
	o := order{by: cmp.Or(by, "name"), desc: desc}
	switch o.by {
	case "name":
		o.of = func(*v1alpha1.Application) string { return "" }
	case "project":
		o.of = projectOf
	case "sync":
		o.of = func(app *v1alpha1.Application) string { return string(syncOf(app)) }
	case "health":
		o.of = func(app *v1alpha1.Application) string { return string(healthOf(app)) }
	case "created":
		o.of = func(app *v1alpha1.Application) string { return app.CreationTimestamp.UTC().Format("20060102150405") }
	case "synced":
		o.of = syncedAt
	default:
		return o, invalid("sort is none of name, project, health, sync, created and synced")
	}
	return o, nil
}

// syncedAt is when the last operation ended, as a text that sorts.
func syncedAt(app *v1alpha1.Application) string {
	op := app.Status.OperationState
	if op == nil || op.FinishedAt == nil {
		return ""
	}
	return op.FinishedAt.UTC().Format("20060102150405")
}

// place is where an application stands in an order.
type place struct {
	Text string `json:"t,omitempty"`
	Name string `json:"n"`
}

func (o order) place(app *v1alpha1.Application) place { return place{o.of(app), app.Name} }

func (o order) compare(a, b place) int {
	n := cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Name, b.Name))
	if o.desc {
		return -n
	}
	return n
}

// page is which part of a list is asked for: limit applications, 0 for all, that come after.
type page struct {
	limit int
	after *place
}

func (c *call) page() (page, error) {
	var p page
	if text := c.query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxPage {
			return p, invalid("limit is no number from 0 to %d", maxPage)
		}
		p.limit = n
	}
	if token := c.query.Get("continue"); token != "" {
		data, err := base64.RawURLEncoding.DecodeString(token)
		if err == nil {
			err = json.Unmarshal(data, &p.after)
		}
		if err != nil || p.after == nil {
			return p, invalid("continue is not what a page before has said")
		}
	}
	return p, nil
}

func listApplications(c *call) (any, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	o, err := orderOf(c.query.Get("sort"))
	if err != nil {
		return nil, err
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	if ns := c.query.Get("appNamespace"); ns != "" && ns != c.live.Namespace {
		return applicationList{Items: []*v1alpha1.Application{}}, nil
	}
	count := c.query.Get("counts") == "true"
	all := slices.DeleteFunc(c.live.State.Applications(), func(app *v1alpha1.Application) bool { return !f.takes(app) })
	if count { // all that match are looked at in any case
		all = slices.DeleteFunc(all, func(app *v1alpha1.Application) bool { return !c.sees(app) })
	}
	slices.SortFunc(all, func(a, b *v1alpha1.Application) int { return o.compare(o.place(a), o.place(b)) })
	out := applicationList{Items: []*v1alpha1.Application{}}
	if count {
		out.Counts = countsOf(all)
	}
	newest := uint64(0)
	for _, app := range all {
		if v, err := strconv.ParseUint(app.ResourceVersion, 10, 64); err == nil {
			newest = max(newest, v)
		}
	}
	out.Metadata.ResourceVersion = strconv.FormatUint(newest, 10)
	return out, c.fill(&out, all, o, p)
}

// sees tells whether the caller may know of an application.
func (c *call) sees(app *v1alpha1.Application) bool {
	return c.may("applications", "get", objectOf(app))
}

// fill puts a page of what may be seen into the list.
func (c *call) fill(out *applicationList, all []*v1alpha1.Application, o order, p page) error {
	for i, app := range all {
		if p.after != nil && o.compare(o.place(app), *p.after) <= 0 || !c.sees(app) {
			continue
		}
		if p.limit > 0 && len(out.Items) == p.limit {
			last := o.place(out.Items[len(out.Items)-1])
			token, err := json.Marshal(last)
			if err != nil {
				return fmt.Errorf("page: %w", err)
			}
			out.Metadata.Continue = base64.RawURLEncoding.EncodeToString(token)
			if out.Counts != nil {
				rest := int64(len(all) - i)
				out.Metadata.RemainingItemCount = &rest
			}
			return nil
		}
		out.Items = append(out.Items, shown(app))
	}
	return nil
}

func countsOf(all []*v1alpha1.Application) *counts {
	n := &counts{Total: len(all), Sync: map[string]int{}, Health: map[string]int{}, Projects: map[string]int{}}
	for _, app := range all {
		n.Sync[string(syncOf(app))]++
		n.Health[string(healthOf(app))]++
		n.Projects[projectOf(app)]++
	}
	return n
}
