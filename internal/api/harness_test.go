package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/api"
	"github.com/lockstep-cd/lockstep/internal/auth"
)

// people let in who is in the table, by the token that they send, and allow what stands there.
type people map[string]person

type person struct {
	// until is when the token ends; zero is never.
	until time.Time
	// may are "resource, action, object", where a part * stands for anything, also at the end of an object.
	may []string
}

func (p people) Authenticate(r *http.Request) (auth.Subject, error) {
	name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	who, known := p[name]
	if !known || !who.until.IsZero() && time.Now().After(who.until) {
		return auth.Subject{}, errors.New("no session")
	}
	return auth.Subject{Name: name, Display: name, Expires: who.until}, nil
}

func (p people) Allows(s auth.Subject, resource, action, object string) bool {
	return slices.ContainsFunc(p[s.Name].may, func(rule string) bool {
		parts := strings.Split(rule, ", ")
		return match(parts[0], resource) && match(parts[1], action) && match(parts[2], object)
	})
}

func match(pattern, text string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return pattern == text || open && strings.HasPrefix(text, prefix)
}

// everybody are those that tests ask as.
func everybody() people {
	return people{
		"admin":   {may: []string{"*, *, *"}},
		"reader":  {may: []string{"*, get, *"}},
		"other":   {may: []string{"*, *, other*"}},
		"nobody":  {},
		"expired": {until: time.Now().Add(-time.Hour), may: []string{"*, *, *"}},
	}
}

// still is a state that does not change.
type still struct {
	apps     []*v1alpha1.Application
	projects []*v1alpha1.AppProject
}

func (s still) Applications() []*v1alpha1.Application { return slices.Clone(s.apps) }
func (s still) Projects() []*v1alpha1.AppProject      { return slices.Clone(s.projects) }

func (s still) Application(name string) *v1alpha1.Application {
	i := slices.IndexFunc(s.apps, func(a *v1alpha1.Application) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return s.apps[i]
}

func (s still) Project(name string) *v1alpha1.AppProject {
	i := slices.IndexFunc(s.projects, func(p *v1alpha1.AppProject) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return s.projects[i]
}

// many makes applications app-00000, app-00001 …, every tenth of project other.
func many(n int) still {
	s := still{projects: []*v1alpha1.AppProject{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, {ObjectMeta: metav1.ObjectMeta{Name: "other"}}}}
	for i := range n {
		a := &v1alpha1.Application{}
		a.Name, a.Namespace, a.ResourceVersion = fmt.Sprintf("app-%05d", i), "lockstep", strconv.Itoa(1000+i)
		a.Labels = map[string]string{"team": fmt.Sprintf("team-%d", i%50), "tier": "web"}
		a.Spec.Project = "shop"
		if i%10 == 9 {
			a.Spec.Project = "other"
		}
		a.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/shop/deploy.git", Path: "apps/" + a.Name, TargetRevision: "main"}
		a.Spec.Destination = v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: "shop"}
		a.Status.Sync = v1alpha1.SyncStatus{Status: v1alpha1.SyncSynced, Revision: "0123456789abcdef0123456789abcdef01234567"}
		a.Status.Health.Status = v1alpha1.HealthHealthy
		if i%100 == 3 {
			a.Status.Health.Status, a.Status.Sync.Status = v1alpha1.HealthDegraded, v1alpha1.SyncOutOfSync
		}
		for j := range 20 {
			a.Status.Resources = append(a.Status.Resources, v1alpha1.ResourceStatus{Kind: "ConfigMap", Version: "v1", Namespace: "shop", Name: fmt.Sprintf("%s-%d", a.Name, j), Status: v1alpha1.SyncSynced})
		}
		s.apps = append(s.apps, a)
	}
	return s
}

// desk is a server that answers from a live.
type desk struct {
	t   *testing.T
	api *api.API
	url string
	log *strings.Builder
}

func newDesk(t *testing.T, live func() api.Live) *desk {
	t.Helper()
	d := &desk{t: t, log: &strings.Builder{}}
	who := everybody()
	d.api = api.New(api.Options{Authenticator: who, Enforcer: who, Live: live, Version: "v0.0.0-test", Log: slog.New(slog.NewTextHandler(d.log, nil))})
	s := httptest.NewServer(d.api)
	t.Cleanup(func() { d.api.Close(); s.Close() })
	d.url = s.URL
	return d
}

func ofStill(s still) func() api.Live {
	return func() api.Live { return api.Live{Namespace: "lockstep", State: s} }
}

// answer is what a desk said.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request as somebody; header are pairs of name and value.
func (d *desk) ask(as, method, path, body string, header ...string) answer {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if as != "" {
		req.Header.Set("Authorization", "Bearer "+as)
	}
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// into reads an answer that must be well.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}
