package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// change is an object that this process has just changed, of a kind that does not report which generation it has seen: its
// status may still be that of before. It counts as seen when its status has moved since, or when a while has passed
// (DESIGN.md §2.5; case C029).
type change struct {
	until   time.Time
	version string
	status  string
}

// changed notes what an apply has changed. The caller holds what guards the results.
func (r *running) changed(k manifest.Key, existed bool, out *unstructured.Unstructured, until time.Time) {
	if !speaksLate(k, existed, out) {
		return
	}
	if r.changes == nil {
		r.changes = map[manifest.Key]change{}
	}
	r.changes[k] = change{until: until, version: out.GetResourceVersion(), status: statusText(out)}
}

// speaksLate tells whether the object's health may be that of before the change, without anything that shows it. Kinds of
// Kubernetes itself that have never reported are not well before they do; what has no status is done when it is applied.
func speaksLate(k manifest.Key, existed bool, out *unstructured.Unstructured) bool {
	f := field.Map(out.Object)
	if _, reports := f.Number("status", "observedGeneration"); reports {
		return false
	}
	if slices.ContainsFunc(f.List("status", "conditions"), func(c field.Map) bool { _, ok := c.Number("observedGeneration"); return ok }) {
		return false
	}
	if !ofKubernetes(k.Group) {
		return true
	}
	return existed && statusText(out) != ""
}

// ofKubernetes tells whether the API group is one that the API server itself serves.
func ofKubernetes(group string) bool {
	if !strings.Contains(group, ".") {
		return true // core, apps, batch, autoscaling, policy, extensions
	}
	own := strings.Fields(`admissionregistration apiextensions apiregistration authentication authorization certificates coordination
		discovery events flowcontrol.apiserver internal.apiserver networking node rbac.authorization resource scheduling storage storagemigration`)
	name, ok := strings.CutSuffix(group, ".k8s.io")
	return ok && slices.Contains(own, name)
}

// statusText is the object's status; empty when nobody has reported anything.
func statusText(u *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	if len(status) == 0 {
		return ""
	}
	if balancer, _ := status["loadBalancer"].(map[string]any); len(status) == 1 && balancer != nil && len(balancer) == 0 {
		return "" // what the API server itself puts into a Service
	}
	text, err := json.Marshal(status)
	if err != nil {
		return ""
	}
	return string(text)
}

// unseen names an object of the step whose controller may not have seen the last change yet; empty when there is none. It is
// asked again in time.
func (e *Engine) unseen(ctx context.Context, st *state, l *look, step plan.Step) string {
	r, now := st.running, e.opts.Now()
	if wait := r.resumed.Add(e.opts.SettleAfter).Sub(now); !r.resumed.IsZero() && wait > 0 {
		e.queue.AddAfter(st.key, queue.Commits, wait)
		return fmt.Sprintf("waiting for the controllers of wave %d to see the last change", step.Wave)
	}
	for _, group := range step.Groups {
		for _, t := range group {
			c, fresh := r.changes[t.Key]
			if !fresh || t.Action != plan.Apply {
				continue
			}
			wait := c.until.Sub(now)
			if wait <= 0 || e.moved(ctx, l, t.Key, c) {
				delete(r.changes, t.Key)
				continue
			}
			e.queue.AddAfter(st.key, queue.Commits, wait)
			return fmt.Sprintf("waiting for the controller of %s to see the last change", t.Key)
		}
	}
	return ""
}

// moved tells whether the object's status is another one than it was right after the change.
func (e *Engine) moved(ctx context.Context, l *look, k manifest.Key, c change) bool {
	it := l.items[l.set.byKey[k]]
	if it.live.ResourceVersion == c.version {
		return false
	}
	live, err := e.cluster.Get(ctx, it.desired.resource, k)
	return err == nil && statusText(live) != c.status
}
