package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// SupersedeAnnotation on an Application says when a sync that is under way gives way to a newer one: "never", or "at-once",
// which does not wait for the end of a running hook and deletes it. By default a sync that waits gives way, and one with a
// running hook when that has ended (DESIGN.md §2.5).
const SupersedeAnnotation = "lockstep.dev/supersede"

const (
	supersedeNever  = "never"
	supersedeAtOnce = "at-once"
	// supersedeMost is how many syncs in a row give way; the next runs to its end, so that some sync does.
	supersedeMost = 3
)

// supersede ends the operation under way when the application renders to something else by now than what it works on.
// Whoever calls it begins the next. A sync to what the operation itself names is never superseded.
func (e *Engine) supersede(ctx context.Context, st *state, l *look) (outcome, error) {
	r := st.running
	if !r.outdated(l) {
		return outcome{}, nil
	}
	hooks, err := e.runningHooks(ctx, r)
	if err != nil {
		return outcome{}, err
	}
	if len(hooks) > 0 && l.app.Annotations[SupersedeAnnotation] != supersedeAtOnce {
		return outcome{rests: fmt.Sprintf("%s waits for the end of hook %s", revisionText(l.rendering.revisions), hooks[0])}, nil
	}
	if err := e.cleanHooks(ctx, st, l, plan.HookFailed, true); err != nil {
		return outcome{}, err
	}
	waited, from := r.message, revisionText(r.revisions)
	message := fmt.Sprintf("was superseded by %s, which renders to something else", revisionText(l.rendering.revisions))
	if waited != "" {
		message += "; it stood at: " + waited
	}
	r.noteDown(renderingNote, nothing+" "+nothing) // it has neither failed nor succeeded
	out := e.end(st, l, v1alpha1.OperationFailed, message)
	e.events.add(l.app, "Normal", "OperationSuperseded", oneLine("the sync to "+from+" "+message), e.opts.Now())
	e.log.Info("sync superseded", "application", st.key, "from", from, "to", revisionText(l.rendering.revisions))
	if !r.op.InitiatedBy.Automated { // a person's sync to whatever the source says goes on with that
		st.running = newRunning(withoutNotes(r.op), e.opts.Now())
		st.running.follow(r)
	}
	out.superseded = r
	return out, nil
}

// outdated tells that the operation is to give way to a newer one, as soon as none of its hooks runs.
func (r *running) outdated(l *look) bool {
	count, _ := strconv.Atoi(noted(&r.op, supersededNote))
	return l.compared() && r.goal != "" && r.goal != l.goal() && !r.fixed() && count < supersedeMost &&
		l.app.Annotations[SupersedeAnnotation] != supersedeNever
}

// gaveWay tells that the operation neither failed nor succeeded but was superseded.
func gaveWay(op *v1alpha1.OperationState) bool {
	return noted(&op.Operation, renderingNote) == nothing+" "+nothing
}

// follow notes whose place the operation takes.
func (r *running) follow(old *running) {
	count, _ := strconv.Atoi(noted(&old.op, supersededNote))
	r.noteDown(supersededNote, strconv.Itoa(count+1))
	r.noteDown(supersedesNote, revisionText(old.revisions))
	if !r.whole() {
		r.noteDown(attemptedNote, noted(&old.op, attemptedNote))
	}
}

// runningHooks are the hooks of this attempt that are live and have not ended.
func (e *Engine) runningHooks(ctx context.Context, r *running) ([]manifest.Key, error) {
	var out []manifest.Key
	for _, at := range r.order {
		if res := r.results[at]; res.HookType == "" || res.HookPhase.Completed() {
			continue
		}
		live, exists, err := e.cluster.Lookup(ctx, at.key)
		if err != nil {
			return nil, err
		}
		if !exists || live.Steering[OperationAnnotation] != r.mark(at.phase) {
			continue
		}
		phase, _ := hookState(live)
		if _, ended := e.hooksSeen.get(at.key, r.mark(at.phase)); !phase.Completed() && !ended {
			out = append(out, at.key)
		}
	}
	return out, nil
}

// revisionText names revisions: commits in seven digits, versions whole.
func revisionText(revisions []string) string {
	short := make([]string, len(revisions))
	for i, r := range revisions {
		if short[i] = r; len(r) == 40 && strings.Trim(r, "0123456789abcdef") == "" {
			short[i] = r[:7]
		}
	}
	if len(short) == 0 {
		return "an unknown revision"
	}
	return strings.Join(short, ", ")
}

// validSupersede says what is wrong with the annotation.
func validSupersede(app *v1alpha1.Application) error {
	switch v := app.Annotations[SupersedeAnnotation]; v {
	case "", supersedeNever, supersedeAtOnce:
		return nil
	default:
		return fmt.Errorf("metadata.annotations[%s]: %q is neither %s nor %s", SupersedeAnnotation, v, supersedeNever, supersedeAtOnce)
	}
}
