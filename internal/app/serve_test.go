package app_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// answerWithin is how long a webhook may take, at any number of applications.
const answerWithin = 50 * time.Millisecond

// The guestbook of the examples is served by a git server and kept in step; a push that is announced is seen at once, far
// before the repository would be asked again.
func TestServe(t *testing.T) {
	p := newPlace(t)
	shop := newGuestbook(p)
	p.secret("webhook.github.secret", "hush")
	process := start(t, p.options())
	process.ready()
	shop.create()
	t.Cleanup(shop.remove)
	shop.inStep(shop.commit(nil))

	fresh := shop.commit(map[string]string{"plain/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"})
	process.push(shop.repo.URL(), fresh, "loud", http.StatusUnauthorized, "does not match the secret")
	process.push(shop.repo.URL(), fresh, "hush", http.StatusOK, `{"applications":1}`)
	shop.inStep(fresh)

	best := time.Hour
	for range 10 {
		began := time.Now()
		process.push(shop.repo.URL(), fresh, "hush", http.StatusOK, `{"applications":1}`)
		best = min(best, time.Since(began))
	}
	if best > answerWithin {
		t.Errorf("a webhook is answered in %s at best, want %s", best, answerWithin)
	}
	process.hasMetrics(shop.name)
	if status, body := process.get("/healthz?full=true"); status != http.StatusOK || !strings.Contains(body, `"lease":"held"`) {
		t.Errorf("full health: %d %s", status, body)
	}
	if status, body := process.get("/api/version"); status != http.StatusOK || !strings.Contains(body, "v0.0.0-test") {
		t.Errorf("version: %d %s", status, body)
	}
}

func (p *process) hasMetrics(application string) {
	p.t.Helper()
	status, body := p.get("/metrics")
	if status != http.StatusOK {
		p.t.Fatalf("metrics: %d %s", status, body)
	}
	for _, want := range []string{
		"go_goroutines ", "process_cpu_seconds_total ", `lockstep_build_info{version="v0.0.0-test"} 1`, "lockstep_queue_length 0",
		`lockstep_renders_total{result="ok"}`, fmt.Sprintf("argocd_app_info{autosync_enabled=\"true\",dest_namespace=%q", p.namespaceOf(body, application)),
	} {
		if !strings.Contains(body, want) {
			p.t.Errorf("no %s in the metrics:\n%s", want, body)
		}
	}
}

// namespaceOf is the destination in the line of an application.
func (p *process) namespaceOf(metrics, application string) string {
	for line := range strings.Lines(metrics) {
		if _, rest, ok := strings.Cut(line, `dest_namespace="`); ok && strings.Contains(line, fmt.Sprintf("name=%q", application)) {
			namespace, _, _ := strings.Cut(rest, `"`)
			return namespace
		}
	}
	p.t.Errorf("no argocd_app_info of %s", application)
	return ""
}

// push announces a commit of the default branch, signed with secret.
func (p *process) push(repository, commit, secret string, status int, text string) {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{
		"ref": "refs/heads/main", "after": commit, "repository": map[string]any{"clone_url": repository, "default_branch": "main"},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // a hash takes every write
	got, answer := ask(p.t, "POST", "http://"+p.Addr()+"/api/webhook", body, map[string]string{
		"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	})
	if got != status || !strings.Contains(answer, text) {
		p.t.Fatalf("webhook: %d %s, want %d %s", got, answer, status, text)
	}
}

// secret writes a key of argocd-secret.
func (p *place) secret(key, value string) {
	p.t.Helper()
	secrets := p.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(p.namespace)
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "argocd-secret"}, "stringData": map[string]any{key: value},
	}}
	if _, err := secrets.Create(p.t.Context(), u, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// guestbook is the application of examples/plain in a repository of its own.
type guestbook struct {
	*place
	name, dest, head string
	repo             *gitserver.Repo
}

func newGuestbook(p *place) *guestbook {
	p.t.Helper()
	server, err := gitserver.Start(gitserver.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = server.Close() })
	repo, err := server.CreateFrom("guestbook", "../../examples")
	if err != nil {
		p.t.Fatal(err)
	}
	head, err := repo.Resolve("HEAD")
	if err != nil {
		p.t.Fatal(err)
	}
	// Tests share the cluster, and the mark of an application in its objects holds no namespace.
	name := "guestbook-" + p.namespace[len(p.namespace)-8:]
	return &guestbook{place: p, name: name, dest: env.Namespace(p.t, env.Cluster(p.t)), head: head, repo: repo}
}

// commit makes a commit of the files; without files it tells the one there is.
func (g *guestbook) commit(files map[string]string) string {
	g.t.Helper()
	if files == nil {
		return g.head
	}
	var err error
	if g.head, err = g.repo.Commit(files, "change"); err != nil {
		g.t.Fatal(err)
	}
	return g.head
}

func (g *guestbook) create() {
	g.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": g.name, "finalizers": []any{"resources-finalizer.argocd.argoproj.io"}},
		"spec": map[string]any{
			"project":     "default",
			"source":      map[string]any{"repoURL": g.repo.URL(), "targetRevision": "main", "path": "plain"},
			"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": g.dest},
			"syncPolicy":  map[string]any{"automated": map[string]any{"prune": true, "selfHeal": true}},
		},
	}}
	if _, err := g.apps().Create(g.t.Context(), u, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

// remove deletes the application while its process still runs, so that it does not stay behind with its finalizer.
func (g *guestbook) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own context has ended
	defer cancel()
	if err := g.apps().Delete(ctx, g.name, metav1.DeleteOptions{}); err != nil {
		return
	}
	until(g.t, "the application is gone", func() (string, bool) {
		_, err := g.apps().Get(ctx, g.name, metav1.GetOptions{})
		return "it is there", err != nil
	})
}

func (g *guestbook) inStep(commit string) {
	g.t.Helper()
	until(g.t, "in step at "+commit, func() (string, bool) {
		a := g.application(g.name)
		if a == nil {
			return "there is no application", false
		}
		s := a.Status
		return fmt.Sprintf("%s at %s, %s, %v", s.Sync.Status, s.Sync.Revision, s.Health.Status, s.Conditions),
			s.Sync.Status == v1alpha1.SyncSynced && s.Sync.Revision == commit && s.Health.Status == v1alpha1.HealthHealthy
	})
}
