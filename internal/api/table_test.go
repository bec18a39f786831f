package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// filled is a path of the table with names in it: of an application and a project that exist.
func filled(path string) string {
	path = strings.NewReplacer("{name}", "app-00001", "projects/app-00001", "projects/shop").Replace(path)
	path = strings.ReplaceAll(path, "projects/app-00001", "projects/shop")
	return regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(path, "x")
}

// Every route declares what it needs.
func TestEveryRouteDeclaresItsPermission(t *testing.T) {
	d := newDesk(t, ofStill(many(10)))
	public := map[string]bool{}
	for _, l := range d.api.Table() {
		switch {
		case l.Needs == "":
			t.Errorf("%s %s declares no permission", l.Method, l.Path)
		case l.Needs == "none" && !public[l.Method+" "+l.Path]:
			t.Errorf("%s %s is open to everybody, and is not on the list of those that are", l.Method, l.Path)
		case l.Needs == "none", strings.Contains(l.Needs, "what may be seen"), l.Needs == "signed in":
		case !l.Asks:
			t.Errorf("%s %s asks for no object: %s", l.Method, l.Path, l.Needs)
		}
	}
}

// Each route as a stranger, with a token that has ended, as a tenant of another project, as somebody who may read, and as
// somebody who may nothing.
func TestWhoMayWhat(t *testing.T) {
	d := newDesk(t, ofStill(many(10)))
	for _, l := range d.api.Table() {
		if l.Needs == "none" {
			continue
		}
		of := !strings.Contains(l.Needs, "what may be seen") && l.Needs != "signed in" // of one object
		for _, c := range []struct {
			as      string
			refused int
		}{
			{"", http.StatusUnauthorized}, {"expired", http.StatusUnauthorized}, {"other", refusedIf(of)}, {"nobody", refusedIf(of)},
			{"reader", refusedIf(!l.Reads)},
		} {
			if c.refused == 0 && (l.Stream || c.as == "reader") {
				continue // what is let through is for the tests of the route
			}
			got := d.ask(c.as, l.Method, filled(l.Path), "{}")
			if c.refused == 0 {
				if got.status == http.StatusForbidden || got.status == http.StatusUnauthorized {
					t.Errorf("%s %s as %q: status %d: %s", l.Method, l.Path, c.as, got.status, got.body)
				}
				if strings.Contains(got.body, "app-00001") {
					t.Errorf("%s %s as %q names what it may not see: %s", l.Method, l.Path, c.as, got.body)
				}
				continue
			}
			var f struct {
				Error, Message string
				Code           int
			}
			if err := json.Unmarshal([]byte(got.body), &f); err != nil || got.status != c.refused || f.Error == "" || f.Error != f.Message || f.Code == 0 {
				t.Errorf("%s %s as %q: status %d instead of %d: %s", l.Method, l.Path, c.as, got.status, c.refused, got.body)
			}
			if strings.Contains(got.body, "shop") || strings.Contains(got.body, "app-0") {
				t.Errorf("%s %s as %q names what it may not see: %s", l.Method, l.Path, c.as, got.body)
			}
		}
	}
	if d.log.Len() > 0 {
		t.Errorf("log: %s", d.log)
	}
}

func refusedIf(yes bool) int {
	if yes {
		return http.StatusForbidden
	}
	return 0
}

// An application that does not exist is refused like one that may not be seen, unless its project is named by somebody who may
// see that.
func TestUnknownApplication(t *testing.T) {
	d := newDesk(t, ofStill(many(10)))
	for _, c := range []struct {
		as, path string
		status   int
	}{
		{"admin", "/api/v1/applications/app-00001", http.StatusOK},
		{"admin", "/api/v1/applications/none", http.StatusForbidden},
		{"admin", "/api/v1/applications/none?project=shop", http.StatusNotFound},
		{"admin", "/api/v1/applications/app-00001?project=other", http.StatusNotFound},
		{"admin", "/api/v1/applications/app-00001?appNamespace=elsewhere", http.StatusForbidden},
		{"admin", "/api/v1/applications/app-00001?appNamespace=lockstep", http.StatusOK},
		{"other", "/api/v1/applications/app-00001", http.StatusForbidden},
		{"other", "/api/v1/applications/app-00001?project=other", http.StatusForbidden},
		{"other", "/api/v1/applications/none?project=other", http.StatusNotFound},
		{"other", "/api/v1/applications/none?project=shop", http.StatusForbidden},
		{"other", "/api/v1/applications/app-00009", http.StatusOK},
		{"other", "/api/v1/projects/shop", http.StatusForbidden},
		{"other", "/api/v1/projects/none", http.StatusForbidden},
		{"admin", "/api/v1/projects/none", http.StatusNotFound},
	} {
		if got := d.ask(c.as, "GET", c.path, ""); got.status != c.status {
			t.Errorf("%s as %s: status %d instead of %d: %s", c.path, c.as, got.status, c.status, got.body)
		}
	}
}

// What comes in crooked is refused in our form, whatever it is.
func TestHostileRequests(t *testing.T) {
	d := newDesk(t, ofStill(many(10)))
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/api/v1/applications/../projects", http.StatusNotFound},
		{"GET", "/api/v1/applications/%2e%2e/projects", http.StatusNotFound},
		{"GET", "/api/v1//applications", http.StatusNotFound},
		{"GET", "/api/v1/applications/", http.StatusNotFound},
		{"GET", "/api/v1/applications/app-00001%2f..%2fapp-00002", http.StatusForbidden},
		{"GET", "/api/v1/applications/app-00001%00", http.StatusForbidden},
		{"GET", "/api/v1/nothing", http.StatusNotFound},
		{"TRACE", "/api/v1/applications", http.StatusMethodNotAllowed},
		{"GET", "/api/v1/applications?limit=-1", http.StatusBadRequest},
		{"GET", "/api/v1/applications?limit=1e9", http.StatusBadRequest},
		{"GET", "/api/v1/applications?continue=%ff", http.StatusBadRequest},
		{"GET", "/api/v1/applications?continue=bnVsbA", http.StatusBadRequest},
		{"GET", "/api/v1/applications?selector=((", http.StatusBadRequest},
		{"GET", "/api/v1/applications?sort=secrets", http.StatusBadRequest},
		{"GET", "/api/v1/applications?fields=" + strings.Repeat("a", 5000), http.StatusBadRequest},
		{"GET", "/api/v1/applications?a=%zz", http.StatusBadRequest},
	} {
		got := d.ask("admin", c.method, c.path, "")
		var f struct {
			Error string
			Code  int
		}
		if err := json.Unmarshal([]byte(got.body), &f); err != nil || got.status != c.status || f.Error == "" || f.Code == 0 {
			t.Errorf("%s %s: status %d instead of %d: %s", c.method, shortened(c.path), got.status, c.status, got.body)
		}
		if strings.Contains(got.body, "goroutine") || strings.Contains(got.body, ".go:") {
			t.Errorf("%s %s shows a stack: %s", c.method, c.path, got.body)
		}
	}
}

func shortened(s string) string { return s[:min(len(s), 80)] }
