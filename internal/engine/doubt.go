package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// doubts are the applications without a valid rendering now. What one of them could declare is not deleted by another: the
// object may have moved from one application's source to the other's (DESIGN.md §2.5, "Prune").
type doubts struct {
	mu sync.Mutex
	// broken says, by application, why it has no valid rendering.
	broken map[string]string
	// waiting are the applications that hold a deletion back.
	waiting map[string]bool
}

func newDoubts() *doubts {
	return &doubts{broken: map[string]string{}, waiting: map[string]bool{}}
}

// set notes whether an application has a valid rendering; it returns who is to look again because of that.
func (d *doubts) set(app string, why error) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, was := d.broken[app]
	if why != nil {
		d.broken[app] = why.Error()
		return nil
	}
	delete(d.broken, app)
	if !was {
		return nil
	}
	woken := slices.Collect(maps.Keys(d.waiting))
	clear(d.waiting)
	return woken
}

// pend notes applications whose source has changed and that were not looked at since: an object that leaves one of them may
// have moved to another by the same commit.
func (d *doubts) pend(keys []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		d.broken[key] = "it was not looked at since its source changed"
	}
}

// forget drops an application that is gone.
func (d *doubts) forget(app string) []string {
	woken := d.set(app, nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, app)
	return woken
}

func (d *doubts) wait(app string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[app] = true
}

func (d *doubts) list() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.broken)
}

// judged notes what a look found out about an application's rendering, and wakes who waits for it.
func (e *Engine) judged(key string, why error) {
	for _, waiting := range e.doubts.set(key, why) {
		e.queue.Add(waiting, queue.Commits)
	}
}

// unsettledPause is after how long a deletion is looked at again that waits for the first look at every application.
const unsettledPause = time.Second

// doubted takes out of the extras what another application could declare that has no valid rendering now, and says what is
// waited for; empty when nothing is.
func (e *Engine) doubted(ctx context.Context, st *state, l *look) string {
	if len(l.extras) == 0 || l.approved {
		return ""
	}
	if !e.othersSeen(st.key) {
		e.queue.AddAfter(st.key, queue.Housekeeping, unsettledPause)
		l.extras = nil
		return "deletions wait until every application was looked at once since the start"
	}
	broken := e.doubts.list()
	delete(broken, st.key)
	var held []string
	for _, other := range slices.Sorted(maps.Keys(broken)) {
		app, _ := e.applications.get(other)
		if app == nil {
			continue
		}
		rules, known := e.projects.rules(projectOf(app))
		l.extras = slices.DeleteFunc(l.extras, func(x cluster.Live) bool {
			if x.Controlled || x.Deleting || l.shared[x.Key] != "" || !couldDeclare(app, rules, known, x.Key) {
				return false
			}
			held = append(held, fmt.Sprintf("%s, which application %s could declare, and that can not be rendered: %s", x.Key, app.Name, broken[other]))
			return true
		})
	}
	if len(held) == 0 || ctx.Err() != nil {
		return ""
	}
	e.doubts.wait(st.key)
	return fmt.Sprintf("not deleted for now: %s; mend it, or confirm by setting the annotation %s to the current time (RFC 3339)",
		strings.Join(held[:min(len(held), 3)], "; "), ApprovedAnnotation)
}

// othersSeen tells that every application but one was looked at since the start.
func (e *Engine) othersSeen(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, other := range e.applications.keys() {
		if st := e.states[other]; other != key && (st == nil || !st.seen.Load()) {
			return false
		}
	}
	return true
}

// couldDeclare tells whether an application that can not be rendered may be the one that declares an object: it did so when
// it was last compared, or the object lies in its namespace and its project permits it.
func couldDeclare(app *v1alpha1.Application, rules project.Rules, known bool, k manifest.Key) bool {
	for _, r := range app.Status.Resources {
		if r.Group == k.Group && r.Kind == k.Kind && r.Name == k.Name && r.Namespace == k.Namespace {
			return true
		}
	}
	if k.Namespace == "" || k.Namespace != app.Spec.Destination.Namespace {
		return false
	}
	here := project.Cluster{Server: InClusterServer, Name: InClusterName}
	return !known || rules.Destination(here, k.Namespace) == nil
}
