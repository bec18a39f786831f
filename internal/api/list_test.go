package api_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

type listed struct {
	Metadata struct {
		ResourceVersion    string
		Continue           string
		RemainingItemCount int
	}
	Items []struct {
		Metadata struct{ Name string }
		Spec     json.RawMessage
		Status   json.RawMessage
	}
	Counts struct {
		Total    int
		Health   map[string]int
		Projects map[string]int
	}
}

func (l listed) names() string {
	var names []string
	for _, i := range l.Items {
		names = append(names, strings.TrimPrefix(i.Metadata.Name, "app-000"))
	}
	return strings.Join(names, " ")
}

func TestListIsFilteredSortedAndPaged(t *testing.T) {
	d := newDesk(t, ofStill(many(30)))
	for _, c := range []struct{ as, query, want string }{
		{"admin", "limit=3", "00 01 02"},
		{"admin", "limit=3&sort=-name", "29 28 27"},
		{"admin", "limit=3&sort=project", "09 19 29"},
		{"admin", "limit=2&sort=health", "03 00"},
		{"other", "", "09 19 29"},
		{"nobody", "", ""},
		{"admin", "projects=other", "09 19 29"},
		{"admin", "project=other&project=none", "09 19 29"},
		{"admin", "selector=team%3Dteam-7", "07"},
		{"admin", "search=APPS%2Fapp-0001+deploy.git", "10 11 12 13 14 15 16 17 18 19"},
		{"admin", "health=Degraded", "03"},
		{"admin", "name=app-00004", "04"},
		{"admin", "repo=https://elsewhere", ""},
		{"admin", "appNamespace=elsewhere", ""},
		{"admin", "cluster=https://kubernetes.default.svc&namespace=shop&sync=OutOfSync", "03"},
	} {
		var l listed
		d.ask(c.as, "GET", "/api/v1/applications?"+c.query, "").into(t, &l)
		if got := l.names(); got != c.want {
			t.Errorf("%s as %s: %q instead of %q", c.query, c.as, got, c.want)
		}
	}
	if got := d.ask("nobody", "GET", "/api/v1/applications", ""); !strings.Contains(got.body, `"items":[]`) {
		t.Errorf("an empty list is %s", got.body)
	}
}

func TestPagesAreTheWholeList(t *testing.T) {
	d := newDesk(t, ofStill(many(101)))
	for _, sort := range []string{"name", "-name", "project", "-health", "created"} {
		var all []string
		token := ""
		for {
			var l listed
			d.ask("admin", "GET", "/api/v1/applications?counts=true&limit=7&sort="+sort+"&continue="+url.QueryEscape(token), "").into(t, &l)
			if l.Counts.Total != 101 || l.Counts.Projects["other"] != 10 || l.Counts.Health["Degraded"] != 1 {
				t.Fatalf("counts: %+v", l.Counts)
			}
			for _, i := range l.Items {
				all = append(all, i.Metadata.Name)
			}
			if token = l.Metadata.Continue; token == "" {
				break
			}
			if l.Metadata.RemainingItemCount != 101-len(all) {
				t.Errorf("%s: %d remain after %d", sort, l.Metadata.RemainingItemCount, len(all))
			}
		}
		if slices.Sort(all); len(all) != 101 || len(slices.Compact(all)) != 101 {
			t.Errorf("%s: %d applications on all pages", sort, len(all))
		}
	}
}

func TestFieldsAndETag(t *testing.T) {
	d := newDesk(t, ofStill(many(3)))
	got := d.ask("admin", "GET", "/api/v1/applications?fields=items.metadata.name,items.spec.project,items.status.sync.status", "")
	want := `{"items":[{"metadata":{"name":"app-00000"},"spec":{"project":"shop"},"status":{"sync":{"status":"Synced"}}},`
	if !strings.HasPrefix(got.body, want) {
		t.Errorf("fields: %s", got.body)
	}
	got = d.ask("admin", "GET", "/api/v1/applications/app-00000?fields=-status,metadata", "")
	if !strings.HasPrefix(got.body, `{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","spec":{`) || strings.Contains(got.body, "status") {
		t.Errorf("left out: %s", got.body)
	}
	tag := got.header.Get("ETag")
	again := d.ask("admin", "GET", "/api/v1/applications/app-00000?fields=-status,metadata", "", "If-None-Match", tag)
	if tag == "" || again.status != 304 || again.body != "" {
		t.Errorf("with %s: status %d: %s", tag, again.status, again.body)
	}
	if other := d.ask("admin", "GET", "/api/v1/applications/app-00001", "", "If-None-Match", tag); other.status != 200 {
		t.Errorf("another answer under the same mark: status %d", other.status)
	}
}

func TestUnknownParametersAreNamed(t *testing.T) {
	d := newDesk(t, ofStill(many(3)))
	got := d.ask("admin", "GET", `/api/v1/applications?colour=b"lue`, "")
	if w := got.header.Get("Warning"); got.status != 200 || w != `299 - "unknown parameter \"colour\" is ignored"` {
		t.Errorf("status %d, warning %s", got.status, w)
	}
}

// The first page of 10,000 applications takes less than 100 ms and is smaller than 200 kB.
func TestFirstPageOfTenThousand(t *testing.T) {
	d := newDesk(t, ofStill(many(10_000)))
	const path = "/api/v1/applications?limit=100&counts=true&fields=metadata,counts,items.metadata.name,items.metadata.labels,items.spec.project,items.spec.source,items.spec.destination,items.status.sync.status,items.status.sync.revision,items.status.health"
	best := time.Hour
	var got answer
	for range 5 { // the machine is shared: the best of a few
		start := time.Now()
		got = d.ask("admin", "GET", path, "")
		best = min(best, time.Since(start))
	}
	var l listed
	got.into(t, &l)
	if len(l.Items) != 100 || l.Counts.Total != 10_000 {
		t.Fatalf("%d of %d", len(l.Items), l.Counts.Total)
	}
	t.Logf("%s, %d bytes", best, len(got.body))
	if best > 100*time.Millisecond || len(got.body) > 200_000 {
		t.Errorf("%s, %d bytes", best, len(got.body))
	}
}
