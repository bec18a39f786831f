package engine

import (
	"fmt"
	"strconv"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// SupersedeAnnotation on an Application says how a newer commit treats an automated sync under way (DESIGN.md §2.5): it is
// given up at once while it waits, and when the hook that it runs has ended. "never" lets each sync run to its end,
// "at-once" does not wait for hooks either, and deletes those that run.
const SupersedeAnnotation = "lockstep.dev/supersede"

// supersededInfo is the note in an operation of how many syncs in a row before it were superseded. It stands in the custom
// resource, since it decides what is applied.
const supersededInfo = "lockstep.dev/superseded"

// supersededInARow is after how many superseded syncs the next one runs to its end: under a stream of commits something
// is deployed all the same.
const supersededInARow = 3

// superseded tells that an automated sync is to be given up, since its source renders to something else by now.
func (e *Engine) superseded(st *state, l *look) bool {
	r := st.running
	fixed := r.op.Sync.Revision != "" || len(r.op.Sync.Revisions) > 0
	if !r.op.InitiatedBy.Automated || !fixed || !l.compared() || st.attempted == "" || st.attempted == l.rendering.digest {
		return false
	}
	how := l.app.Annotations[SupersedeAnnotation]
	return how != "never" && r.supersededBefore() < supersededInARow && (how == "at-once" || !r.hookRuns())
}

// supersede gives the sync under way up, and says so.
func (e *Engine) supersede(st *state, l *look) {
	r := st.running
	st.superseded = r.supersededBefore() + 1
	st.running = nil
	e.hooksSeen.forget(r)
	message := fmt.Sprintf("sync to %s superseded: %s renders to something else", short(first(revisionsOfOperation(r.op))), short(first(l.rendering.revisions)))
	e.log.Info("superseded", "application", st.key, "sync", message)
	e.events.add(l.app, "Normal", "OperationSuperseded", message, e.opts.Now())
}

func revisionsOfOperation(op v1alpha1.Operation) []string {
	if op.Sync.Revision != "" {
		return []string{op.Sync.Revision}
	}
	return op.Sync.Revisions
}

func short(revision string) string { return revision[:min(len(revision), 7)] }

// supersededBefore is how many syncs in a row were superseded before this one.
func (r *running) supersededBefore() int {
	for _, info := range r.op.Info {
		if info != nil && info.Name == supersededInfo {
			n, _ := strconv.Atoi(info.Value) // other text is not ours
			return n
		}
	}
	return 0
}

// noteSuperseded writes the number into a sync that follows superseded ones.
func (st *state) noteSuperseded() {
	if st.superseded > 0 {
		st.running.op.Info = append(st.running.op.Info, &v1alpha1.Info{Name: supersededInfo, Value: strconv.Itoa(st.superseded)})
	}
	st.superseded = 0
}

// hookRuns tells that a hook of the operation has begun and not ended.
func (r *running) hookRuns() bool {
	for _, res := range r.results {
		if res.HookType != "" && res.HookType != v1alpha1.HookType(plan.Skip) && !res.HookPhase.Completed() {
			return true
		}
	}
	return false
}

// validSupersede says what is wrong with the annotation.
func validSupersede(app *v1alpha1.Application) error {
	switch v := app.Annotations[SupersedeAnnotation]; v {
	case "", "never", "at-once":
		return nil
	default:
		return fmt.Errorf("metadata.annotations[%s]: %q is neither never nor at-once", SupersedeAnnotation, v)
	}
}
