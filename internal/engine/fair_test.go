package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	renderjob "github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// gate holds renderings of some applications back, and notes all in the order in which they began.
type gate struct {
	mu    sync.Mutex
	shut  chan struct{} // nil while it is open
	order []string
	held  int
}

// close holds back renderings from now on, and begins the order anew.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.order, g.held = make(chan struct{}), nil, 0
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// pass notes a rendering and waits while the gate is shut for it.
func (g *gate) pass(ctx context.Context, app string, holds bool) error {
	g.mu.Lock()
	g.order = append(g.order, app)
	shut := g.shut
	if holds && shut != nil {
		g.held++
	}
	g.mu.Unlock()
	if !holds || shut == nil {
		return nil
	}
	select {
	case <-shut:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) began() (order []string, held int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.order), g.held
}

// crowd is many applications of one project and repository, and one of another project.
type crowd struct {
	*world
	gate        gate
	many, other *gitserver.Repo
}

const crowdSize = 20

func newCrowd(t *testing.T, workers int, change func(*v1alpha1.Application)) *crowd {
	t.Helper()
	c := &crowd{world: newWorld(t)}
	c.restart(false, func(o *engine.Options) {
		render := o.Render
		o.Workers = workers
		o.Render = func(ctx context.Context, in renderjob.Input) (renderjob.Output, error) {
			if err := c.gate.pass(ctx, in.AppName, strings.HasPrefix(in.AppName, "many")); err != nil {
				return renderjob.Output{}, err
			}
			return render(ctx, in)
		}
	})
	c.many = c.repo("many", c.content("1"))
	c.other = c.repo("other", map[string]string{"a.yaml": configMap("other", "1")})
	c.copyProject("others")
	for i := range crowdSize {
		name := fmt.Sprintf("many%d", i)
		c.app(name, v1alpha1.ApplicationSource{RepoURL: c.many.URL(), Path: name})
	}
	c.app("other", v1alpha1.ApplicationSource{RepoURL: c.other.URL(), Path: "."}, func(a *v1alpha1.Application) {
		a.Spec.Project = "others"
		change(a)
	})
	c.settledCrowd("")
	return c
}

func (c *crowd) content(value string) map[string]string {
	files := map[string]string{}
	for i := range crowdSize {
		files[fmt.Sprintf("many%d/a.yaml", i)] = configMap(fmt.Sprintf("many%d", i), value)
	}
	return files
}

func (c *crowd) settledCrowd(commit string) {
	c.t.Helper()
	for i := range crowdSize {
		c.settled(fmt.Sprintf("many%d", i), commit)
	}
}

// copyProject makes a project with the rules of default.
func (w *world) copyProject(name string) {
	w.t.Helper()
	projects := w.client.Resource(v1alpha1.AppProjects()).Namespace(w.control)
	other, err := projects.Get(w.t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	copied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": other.GetAPIVersion(), "kind": other.GetKind(), "metadata": map[string]any{"name": name}, "spec": other.Object["spec"],
	}}
	if _, err := projects.Create(w.t.Context(), copied, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A push to many applications keeps every worker busy: a sync that somebody asks for meanwhile is done all the same.
func TestASyncByHandIsNotBehindAPush(t *testing.T) {
	c := newCrowd(t, 2, manual)
	c.gate.close()
	sha := c.commit(c.many, c.content("2"))
	c.until("both workers busy", func() (string, bool) {
		_, held := c.gate.began()
		return fmt.Sprint(held), held == 2
	})
	c.patchApp("other", `{"operation":{"sync":{},"initiatedBy":{"username":"ann"}}}`)
	c.until("the sync by hand", func() (string, bool) {
		app := c.get("other")
		return operation(app), app.Operation == nil && strings.HasPrefix(operation(app), string(v1alpha1.OperationSucceeded))
	})
	if _, held := c.gate.began(); held != 2 {
		t.Errorf("%d renderings of the push had begun when the sync ended", held)
	}
	c.settled("other", "") // what follows from the sync is not behind the push either
	c.gate.open()
	c.settledCrowd(sha)
}

// inLine tells that all of n applications wait for a worker or have one.
func (c *crowd) inLine(prefix string, n int) bool {
	for i := range n {
		if !c.engine.Asked(c.control + "/" + c.real(fmt.Sprint(prefix, i))) {
			return false
		}
	}
	return true
}

// With one worker, commits of another project come next, however many applications of the first wait.
func TestProjectsTakeTurnsAtAPush(t *testing.T) {
	c := newCrowd(t, 1, func(*v1alpha1.Application) {})
	c.settled("other", "")
	c.gate.close()
	many := c.commit(c.many, c.content("2"))
	c.until("the worker busy and the others in line", func() (string, bool) {
		_, held := c.gate.began()
		return fmt.Sprint(held), held == 1 && c.inLine("many", crowdSize)
	})
	other := c.commit(c.other, map[string]string{"a.yaml": configMap("other", "2")})
	c.until("the other project's in line", func() (string, bool) { return "", c.engine.Asked(c.control + "/" + c.real("other")) })
	c.gate.open()
	c.settled("other", other)
	c.settledCrowd(many)
	order, _ := c.gate.began()
	at := slices.IndexFunc(order, func(name string) bool { return strings.HasPrefix(name, "other") })
	if at != 1 {
		t.Errorf("rendered as number %d of %d: %v", at, len(order), order)
	}
}
