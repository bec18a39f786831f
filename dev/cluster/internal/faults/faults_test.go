package faults

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestMatches(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		fault                 Fault
		group, resource, verb string
		want                  bool
	}{
		{Fault{Resource: "deployments.apps"}, "apps", "deployments", "get", true},
		{Fault{Resource: "deployments.apps"}, "apps", "replicasets", "get", false},
		{Fault{Resource: "deployments.apps"}, "example.com", "deployments", "get", false},
		{Fault{Resource: "services"}, "", "services", "list", true},
		{Fault{Resource: "services"}, "serving.example.com", "services", "list", false},
		{Fault{Resource: "*"}, "apps", "deployments", "list", true},
		{Fault{Resource: "routes.gateway.example.com"}, "gateway.example.com", "routes", "list", true},
		{Fault{Resource: "*", Verbs: []string{"patch"}}, "apps", "deployments", "list", false},
		{Fault{Resource: "*", Until: now.Add(time.Second)}, "apps", "deployments", "list", true},
		{Fault{Resource: "*", Until: now.Add(-time.Second)}, "apps", "deployments", "list", false},
	} {
		if got := tc.fault.Matches(tc.group, tc.resource, tc.verb, now); got != tc.want {
			t.Errorf("%+v on %s %s.%s: %t", tc.fault, tc.verb, tc.resource, tc.group, got)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, f := range []Fault{{}, {Resource: "pods"}, {Resource: "pods", Answer: "418"}, {Answer: TooManyRequests}} {
		if f.Validate() == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	for _, a := range Answers() {
		if err := (Fault{Resource: "pods", Answer: a}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestFilter: every change of the file holds for the next request.
func TestFilter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.json")
	resolver := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	handler := Filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }), resolver, path)
	expect := func(url string, code int) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		if w.Code != code {
			t.Errorf("%s: %d, want %d", url, w.Code, code)
		}
	}
	const deployments, pods = "/apis/apps/v1/namespaces/a/deployments/b/status", "/api/v1/namespaces/a/pods"
	expect(deployments, http.StatusOK)
	for _, answer := range []struct {
		answer Answer
		code   int
	}{{TooManyRequests, 429}, {ServerError, 500}, {Unavailable, 503}, {Forbidden, 403}} {
		if err := Write(path, []Fault{{Resource: "deployments.apps", Answer: answer.answer}}); err != nil {
			t.Fatal(err)
		}
		expect(deployments, answer.code)
		expect(pods, http.StatusOK)
		expect("/readyz", http.StatusOK)
	}
	if err := Write(path, nil); err != nil {
		t.Fatal(err)
	}
	expect(deployments, http.StatusOK)
}
