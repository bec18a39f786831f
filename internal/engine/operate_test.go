package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

func TestBackoff(t *testing.T) {
	factor := func(n int64) *int64 { return &n }
	cases := []struct {
		name   string
		policy *v1alpha1.Backoff
		want   []time.Duration
	}{
		{"by default", nil, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 180 * time.Second}},
		{"bare seconds", &v1alpha1.Backoff{Duration: "1", MaxDuration: "3"}, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}},
		{"another factor", &v1alpha1.Backoff{Duration: "2s", Factor: factor(3), MaxDuration: "1m"}, []time.Duration{2 * time.Second, 6 * time.Second, 18 * time.Second, 54 * time.Second, time.Minute}},
		{"a factor of one", &v1alpha1.Backoff{Duration: "2s", Factor: factor(1)}, []time.Duration{2 * time.Second, 2 * time.Second}},
		{"nonsense is the default", &v1alpha1.Backoff{Duration: "soon", Factor: factor(0), MaxDuration: "-1s"}, []time.Duration{5 * time.Second, 10 * time.Second}},
		{"longer than the longest", &v1alpha1.Backoff{Duration: "1h"}, []time.Duration{3 * time.Minute}},
	}
	for _, c := range cases {
		for n, want := range c.want {
			if got := backoff(c.policy, int64(n)); got != want {
				t.Errorf("%s, retry %d: %s, want %s", c.name, n+1, got, want)
			}
		}
	}
	if got := backoff(&v1alpha1.Backoff{Duration: "1s", MaxDuration: "2000000h"}, 1<<40); got <= 0 {
		t.Errorf("after very many retries: %s", got)
	}
}

func TestAutomated(t *testing.T) {
	off, on := false, true
	cases := map[string]struct {
		policy *v1alpha1.SyncPolicy
		want   plan.Auto
	}{
		"no policy":  {nil, plan.Auto{}},
		"manual":     {&v1alpha1.SyncPolicy{}, plan.Auto{}},
		"present":    {&v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{}}, plan.Auto{Enabled: true}},
		"switched":   {&v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Enabled: &off, Prune: true}}, plan.Auto{Prune: true}},
		"everything": {&v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Enabled: &on, Prune: true, SelfHeal: true, AllowEmpty: true}}, plan.Auto{Enabled: true, Prune: true, SelfHeal: true, AllowEmpty: true}},
	}
	for name, c := range cases {
		app := applicationForTest()
		app.Spec.SyncPolicy = c.policy
		if got := automated(app); got != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func itemForTest(name string, v compare.Verdict) item {
	return item{desired: &desired{key: manifest.Key{Kind: "ConfigMap", Namespace: "web", Name: name}}, verdict: v}
}

// A sync that would leave the same objects behind must not follow the one before.
func TestExtrasThatStayStartNoSync(t *testing.T) {
	extra := func(options string) cluster.Live {
		return cluster.Live{Key: manifest.Key{Kind: "ConfigMap", Namespace: "web", Name: "old"}, UID: "u", Steering: map[string]string{plan.SyncOptionsAnnotation: options}}
	}
	cases := []struct {
		name   string
		change func(*look)
		app    []string
		extra  cluster.Live
		want   bool
	}{
		{"plain", nil, nil, extra(""), true},
		{"Prune=false of the object", nil, nil, extra("Prune=false"), false},
		{"Prune=false of the application", nil, []string{"Prune=false"}, extra(""), false},
		{"Prune=true against the application", nil, []string{"Prune=false"}, extra("Prune=true"), true},
		{"declared by another application", func(l *look) { l.shared = map[manifest.Key]string{extra("").Key: "lockstep/other"} }, nil, extra(""), false},
		{"made by a controller", nil, nil, cluster.Live{Controlled: true}, false},
		{"being deleted", nil, nil, cluster.Live{Deleting: true}, false},
	}
	for _, c := range cases {
		l := &look{app: applicationForTest()}
		l.app.Spec.SyncPolicy = &v1alpha1.SyncPolicy{SyncOptions: c.app}
		if c.change != nil {
			c.change(l)
		}
		if got := l.prunable(c.extra); got != c.want {
			t.Errorf("%s: prunable is %v", c.name, got)
		}
	}
}

func TestStatusPatch(t *testing.T) {
	app := applicationForTest()
	app.ResourceVersion = "7"
	app.Status.Sync.Revision, app.Status.SourceType = "abc", "Helm"
	same := *app.Status.DeepCopy()
	moved := *app.Status.DeepCopy()
	moved.Sync.Revision, moved.SourceType = "def", ""
	cases := []struct {
		name             string
		status           v1alpha1.ApplicationStatus
		taken, refreshed bool
		want             string
	}{
		{"nothing", same, false, false, ""},
		{"what changed, and what went", moved, false, false, `{"status":{"sourceType":null,"sync":{"revision":"def"}}}`},
		{"an operation was taken up", same, true, false, `{"metadata":{"resourceVersion":"7"},"operation":null}`},
		{"a refresh was done", same, false, true, `{"metadata":{"resourceVersion":"7","annotations":{"argocd.argoproj.io/refresh":null,"argocd.argoproj.io/refresh-timestamp":null}}}`},
		{"all at once", moved, true, true, `{"metadata":{"resourceVersion":"7","annotations":{"argocd.argoproj.io/refresh":null,"argocd.argoproj.io/refresh-timestamp":null}},"operation":null,"status":{"sourceType":null,"sync":{"revision":"def"}}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := statusPatch(app, c.status, c.taken, c.refreshed)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if got != nil {
					t.Errorf("got %s", got)
				}
				return
			}
			var a, b any
			if err := json.Unmarshal(got, &a); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &b); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(b, a); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestRevisionOnly(t *testing.T) {
	e := &Engine{}
	base := v1alpha1.ApplicationStatus{}
	base.Sync.Revision, base.Sync.Status = "abc", v1alpha1.SyncSynced
	cases := []struct {
		name   string
		change func(*v1alpha1.ApplicationStatus)
		want   bool
	}{
		{"nothing", func(*v1alpha1.ApplicationStatus) {}, false},
		{"the revision", func(s *v1alpha1.ApplicationStatus) { s.Sync.Revision = "def" }, true},
		{"the revisions", func(s *v1alpha1.ApplicationStatus) { s.Sync.Revisions = []string{"a", "b"} }, true},
		{"the sync status", func(s *v1alpha1.ApplicationStatus) { s.Sync.Status = v1alpha1.SyncOutOfSync }, false},
		{"both", func(s *v1alpha1.ApplicationStatus) { s.Sync.Revision, s.Sync.Status = "def", v1alpha1.SyncOutOfSync }, false},
		{"a condition with it", func(s *v1alpha1.ApplicationStatus) {
			s.Sync.Revision, s.Conditions = "def", []v1alpha1.ApplicationCondition{{Type: v1alpha1.ConditionSyncError}}
		}, false},
	}
	for _, c := range cases {
		now := *base.DeepCopy()
		c.change(&now)
		if got := e.revisionOnly(base, now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestInputsHash(t *testing.T) {
	fresh := func() request {
		return request{
			app: applicationForTest(), sources: []v1alpha1.ApplicationSource{{RepoURL: "https://x/y", Path: "p"}},
		}
	}
	base := inputsHash(fresh())
	changes := map[string]func(*request){
		"path":             func(r *request) { r.sources[0].Path = "q" },
		"helm values":      func(r *request) { r.sources[0].Helm = &v1alpha1.ApplicationSourceHelm{Values: "a: b"} },
		"another source":   func(r *request) { r.sources = append(r.sources, r.sources[0]) },
		"name":             func(r *request) { r.app.Name = "other" },
		"namespace":        func(r *request) { r.app.Spec.Destination.Namespace = "db" },
		"project":          func(r *request) { r.app.Spec.Project = "team" },
		"a fixed revision": func(r *request) { r.fixed = []string{"abc"} },
	}
	for name, change := range changes {
		r := fresh()
		change(&r)
		if inputsHash(r) == base {
			t.Errorf("%s is no input", name)
		}
	}
	r := fresh()
	r.app.Labels, r.app.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	r.app.Spec.SyncPolicy = &v1alpha1.SyncPolicy{}
	r.caps.KubeVersion = "v1.38.0" // only for those that ask, see TestNewKindRendersWhoAskedForIt
	if inputsHash(r) != base {
		t.Error("what does not decide over the rendering is an input")
	}
}
