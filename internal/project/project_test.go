package project_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/project"
)

// rules reads a spec as the engine does: out of what the API server answers.
func rules(t *testing.T, spec string) project.Rules {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"team"},"spec":`+spec+`}`), &fields); err != nil {
		t.Fatal(err)
	}
	p := &v1alpha1.AppProject{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, p); err != nil {
		t.Fatal(err)
	}
	return project.Of(p)
}

func list(t *testing.T, items []string) string {
	t.Helper()
	text, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSources(t *testing.T) {
	const repo = "https://github.com/org/app"
	cases := []struct {
		name     string
		patterns []string
		url      string
		permit   bool
	}{
		{"no pattern", nil, repo, false},
		{"everything", []string{"*"}, repo, true},
		{"itself", []string{repo}, repo, true},
		{"another", []string{"https://github.com/org/other"}, repo, false},
		{"one star stops at a slash", []string{"https://github.com/*"}, repo, false},
		{"one star within a part", []string{"https://github.com/org/a*"}, repo, true},
		{"two stars do not stop", []string{"https://github.com/**"}, repo, true},
		{"two stars in front", []string{"**github.com/org/*"}, repo, true},
		{"a question mark", []string{"https://github.com/org/ap?"}, repo, true},
		{"alternatives", []string{"https://github.com/{org,team}/*"}, repo, true},
		{"alternatives without it", []string{"https://github.com/{orgs,team}/*"}, repo, false},
		{"a class", []string{"https://github.com/[a-p]rg/*"}, repo, true},
		{"a class without it", []string{"https://github.com/[!a-p]rg/*"}, repo, false},
		{"a dot is a dot", []string{"https://github.com/org/app"}, "https://githubxcom/org/app", false},
		{"a prefix is no match", []string{repo}, "https://github.com/org/app-other", false},
		{"a broken pattern is a name", []string{"https://github.com/org/{app"}, "https://github.com/org/app", false},

		{"denied beside everything", []string{"*", "!https://github.com/org/app"}, repo, false},
		{"denied before everything", []string{"!https://github.com/org/*", "*"}, repo, false},
		{"not what is denied", []string{"!https://github.com/org/secret", "*"}, repo, true},
		{"a denial alone permits the rest", []string{"!https://github.com/org/secret"}, repo, true},
		{"a denial alone denies", []string{"!https://github.com/org/app"}, repo, false},
		{"all denied", []string{"!*", repo}, repo, false},

		{"suffix .git", []string{repo + ".git"}, repo, true},
		{"suffix .git of the other", []string{repo}, repo + ".git/", true},
		{"case", []string{"https://GitHub.com/Org/App"}, repo, true},
		{"scp form and ssh URL", []string{"git@github.com:org/*"}, "ssh://git@github.com/org/app.git", true},
		{"default port", []string{repo}, "https://github.com:443/org/app", true},
		{"another port", []string{repo}, "https://github.com:8443/org/app", false},
		{"user", []string{repo}, "https://me@github.com/org/app", true},
		{"a user is no host", []string{"https://github.com/**"}, "https://github.com@evil.example/org/app", false},
		{"local path", []string{"/srv/git/*"}, "/srv/git/app", true},
		{"local URL", []string{"/srv/git/*"}, "file:///srv/git/app", true},
		{"dots lead out of a local path", []string{"/srv/git/**"}, "/srv/git/../secret", false},
		{"dots lead out of an organisation", []string{"https://github.com/org/**"}, "https://github.com/org/../secret/app", false},
		{"escapes hide nothing", []string{"*", "!https://github.com/org/*"}, "https://github.com/%6Frg/app", false},
		{"a second slash hides nothing", []string{"*", "!https://github.com/org/*"}, "https://github.com//org/app", false},
		{"scp form hides nothing", []string{"*", "!ssh://git@github.com/org/**"}, "git@github.com:org/app", false},
		{"oci", []string{"oci://ghcr.io/org/*"}, "oci://ghcr.io/org/charts", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := rules(t, `{"sourceRepos":`+list(t, c.patterns)+`}`).Source(c.url)
			check(t, err, c.permit)
		})
	}
}

func check(t *testing.T, err error, permit bool) {
	t.Helper()
	switch {
	case permit && err != nil:
		t.Errorf("refused: %v", err)
	case !permit && err == nil:
		t.Error("permitted")
	case !permit && !errors.Is(err, project.ErrForbidden):
		t.Errorf("%v is not of the kind ErrForbidden", err)
	case !permit && !strings.Contains(err.Error(), "team"):
		t.Errorf("%v does not name the project", err)
	}
}

func TestDestinations(t *testing.T) {
	here := project.Cluster{Server: "https://kubernetes.default.svc", Name: "in-cluster"}
	cases := []struct {
		name, destinations string
		namespace          string
		permit             bool
	}{
		{"none", `[]`, "web", false},
		{"everything", `[{"server":"*","namespace":"*"}]`, "web", true},
		{"by server", `[{"server":"https://kubernetes.default.svc","namespace":"web"}]`, "web", true},
		{"a slash at the end", `[{"server":"https://Kubernetes.default.svc/","namespace":"web"}]`, "web", true},
		{"by name", `[{"name":"in-cluster","namespace":"web"}]`, "web", true},
		{"name glob", `[{"name":"in-*","namespace":"web"}]`, "web", true},
		{"star crosses slashes of a server", `[{"server":"https*","namespace":"web"}]`, "web", true},
		{"another server", `[{"server":"https://other","namespace":"web"}]`, "web", false},
		{"another namespace", `[{"server":"*","namespace":"we"}]`, "web", false},
		{"namespace glob", `[{"server":"*","namespace":"team-*"}]`, "team-a", true},
		{"neither server nor name", `[{"namespace":"*"}]`, "web", false},
		{"namespace missing in the rule", `[{"server":"*"}]`, "web", false},
		{"halves of two rules", `[{"server":"*","namespace":"a"},{"server":"https://other","namespace":"*"}]`, "web", false},

		{"denied namespace", `[{"server":"*","namespace":"!kube-system"},{"server":"*","namespace":"*"}]`, "kube-system", false},
		{"beside a denied namespace", `[{"server":"*","namespace":"!kube-system"},{"server":"*","namespace":"*"}]`, "web", true},
		{"a denial alone permits the rest", `[{"server":"*","namespace":"!kube-*"}]`, "web", true},
		{"a denial alone denies", `[{"server":"*","namespace":"!kube-*"}]`, "kube-system", false},
		{"denied elsewhere", `[{"server":"https://other","namespace":"!web"},{"server":"*","namespace":"*"}]`, "web", true},
		{"denied server", `[{"server":"!https://kubernetes.default.svc","namespace":"*"},{"server":"*","namespace":"*"}]`, "web", false},
		{"denied server of other namespaces", `[{"server":"!https://kubernetes.default.svc","namespace":"db"},{"server":"*","namespace":"*"}]`, "web", true},
		{"denied name", `[{"name":"!in-cluster","namespace":"*"},{"server":"*","namespace":"*"}]`, "web", false},
		{"another denied server permits the rest", `[{"server":"!https://other","namespace":"web"}]`, "web", true},

		{"cluster-scoped", `[{"server":"*","namespace":"web"}]`, "", true},
		{"cluster-scoped beside a denied namespace", `[{"server":"*","namespace":"!kube-system"}]`, "", true},
		{"cluster-scoped on a denied server", `[{"server":"!https://kubernetes*","namespace":"*"},{"server":"*","namespace":"*"}]`, "", false},
		{"cluster-scoped on another server", `[{"server":"https://other","namespace":"*"}]`, "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			check(t, rules(t, `{"destinations":`+c.destinations+`}`).Destination(here, c.namespace), c.permit)
		})
	}
}

func TestKinds(t *testing.T) {
	deployment := metav1.GroupKind{Group: "apps", Kind: "Deployment"}
	role := metav1.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	service := metav1.GroupKind{Kind: "Service"}
	cases := []struct {
		name, spec string
		kind       metav1.GroupKind
		object     string
		namespaced bool
		permit     bool
	}{
		{"namespaced without lists", `{}`, deployment, "a", true, true},
		{"cluster-scoped without lists", `{}`, role, "a", false, false},
		{"empty whitelist of namespaced kinds", `{"namespaceResourceWhitelist":[]}`, deployment, "a", true, false},
		{"empty whitelist of cluster-scoped kinds", `{"clusterResourceWhitelist":[]}`, role, "a", false, false},
		{"empty blacklists", `{"namespaceResourceBlacklist":[]}`, deployment, "a", true, true},
		{"named", `{"namespaceResourceWhitelist":[{"group":"apps","kind":"Deployment"}]}`, deployment, "a", true, true},
		{"case counts", `{"namespaceResourceWhitelist":[{"group":"apps","kind":"deployment"}]}`, deployment, "a", true, false},
		{"another group", `{"namespaceResourceWhitelist":[{"group":"","kind":"Deployment"}]}`, deployment, "a", true, false},
		{"core group", `{"namespaceResourceWhitelist":[{"group":"","kind":"Service"}]}`, service, "a", true, true},
		{"a star is the core group too", `{"namespaceResourceWhitelist":[{"group":"*","kind":"S*"}]}`, service, "a", true, true},
		{"white and black", `{"namespaceResourceWhitelist":[{"group":"*","kind":"*"}],"namespaceResourceBlacklist":[{"group":"apps","kind":"*"}]}`, deployment, "a", true, false},
		{"black only", `{"namespaceResourceBlacklist":[{"group":"apps","kind":"Deploy*"}]}`, deployment, "a", true, false},
		{"lists of the other scope", `{"clusterResourceWhitelist":[{"group":"*","kind":"*"}],"namespaceResourceWhitelist":[]}`, deployment, "a", true, false},
		{"cluster-scoped named", `{"clusterResourceWhitelist":[{"group":"rbac.authorization.k8s.io","kind":"ClusterRole"}]}`, role, "a", false, true},
		{"cluster-scoped glob", `{"clusterResourceWhitelist":[{"group":"*.k8s.io","kind":"*"}]}`, role, "a", false, true},
		{"cluster-scoped by object", `{"clusterResourceWhitelist":[{"group":"*","kind":"*","name":"team-*"}]}`, role, "team-a", false, true},
		{"cluster-scoped by another object", `{"clusterResourceWhitelist":[{"group":"*","kind":"*","name":"team-*"}]}`, role, "admin", false, false},
		{"cluster-scoped black", `{"clusterResourceWhitelist":[{"group":"*","kind":"*"}],"clusterResourceBlacklist":[{"group":"*","kind":"ClusterRole"}]}`, role, "a", false, false},
		{"cluster-scoped object black", `{"clusterResourceWhitelist":[{"group":"*","kind":"*"}],"clusterResourceBlacklist":[{"group":"*","kind":"*","name":"admin"}]}`, role, "a", false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			check(t, rules(t, c.spec).Kind(c.kind, c.object, c.namespaced), c.permit)
		})
	}
}

func TestRefusalsNameTheKindAndTheList(t *testing.T) {
	err := rules(t, `{}`).Kind(metav1.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, "a", false)
	want := "kind ClusterRole.rbac.authorization.k8s.io is not permitted by the project team: clusterResourceWhitelist does not name it"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAnything(t *testing.T) {
	r := project.Anything()
	for _, err := range []error{
		r.Source("https://github.com/org/app"), r.Destination(project.Cluster{Server: "https://x"}, "kube-system"),
		r.Kind(metav1.GroupKind{Kind: "Node"}, "n", false), r.Kind(metav1.GroupKind{Kind: "Pod"}, "p", true),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestNothing(t *testing.T) {
	r := project.Rules{}
	if r.Source("x") == nil || r.Destination(project.Cluster{Server: "x", Name: "x"}, "x") == nil ||
		r.Kind(metav1.GroupKind{Kind: "Node"}, "n", false) == nil {
		t.Error("the zero value permits something")
	}
}
