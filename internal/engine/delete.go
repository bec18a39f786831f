package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/assess"
	"github.com/lockstep-cd/lockstep/internal/handover"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// The finalizers of an Application. What each asks for is done when the Application is deleted, in the order of stages; then
// it is taken off.
const (
	// CascadeFinalizer asks for the objects of the application to go with it, and waits for what they own.
	CascadeFinalizer    = "resources-finalizer.argocd.argoproj.io"
	foregroundFinalizer = CascadeFinalizer + "/foreground"
	backgroundFinalizer = CascadeFinalizer + "/background"
	// PreDeleteFinalizer and PostDeleteFinalizer ask for hooks; they come and go with the hooks in Git.
	PreDeleteFinalizer  = "pre-delete-finalizer.argocd.argoproj.io"
	PostDeleteFinalizer = "post-delete-finalizer.argocd.argoproj.io"
	cleanup             = "/cleanup"
)

// OrphanAnnotation lets an Application that is being deleted, and carries it with the value "true", go without anything that
// its finalizers ask for: its objects are left behind, and its hooks are not run.
const OrphanAnnotation = "lockstep.dev/orphan"

// stage is one part of a deletion. Do tells what it waits for; with nothing to wait for it is done.
type stage struct {
	finalizers []string
	do         func(context.Context, *state, *v1alpha1.Application) (pause, error)
}

// pause is why a deletion stops for now.
type pause struct {
	// waits says what for; empty when the stage is done.
	waits string
	// detail goes on where waits ends; a change of it is no other wait.
	detail string
	// state is what status.operationState becomes; nil leaves it.
	state *v1alpha1.OperationState
	// again is when to look again, where nothing wakes us; 0 is never.
	again time.Duration
}

func (e *Engine) stages() []stage {
	return []stage{
		{finalizers: []string{PreDeleteFinalizer}, do: func(ctx context.Context, st *state, app *v1alpha1.Application) (pause, error) {
			return e.deleteHooks(ctx, st, app, plan.PreDelete)
		}},
		{finalizers: []string{CascadeFinalizer, foregroundFinalizer, backgroundFinalizer}, do: e.cascade},
		{finalizers: []string{PostDeleteFinalizer}, do: func(ctx context.Context, st *state, app *v1alpha1.Application) (pause, error) {
			return e.deleteHooks(ctx, st, app, plan.PostDelete)
		}},
		{finalizers: []string{PreDeleteFinalizer + cleanup, PostDeleteFinalizer + cleanup}, do: e.cleanUp},
	}
}

// delete goes on with the deletion of an application: what its finalizers ask for, one stage after the other.
func (e *Engine) delete(ctx context.Context, st *state, app *v1alpha1.Application) error {
	e.undeclare(st.key) // what it shares with others is theirs from now on
	if app.Annotations[OrphanAnnotation] == "true" {
		return e.letGo(ctx, st, app)
	}
	for _, s := range e.stages() {
		if !slices.ContainsFunc(app.Finalizers, func(f string) bool { return slices.Contains(s.finalizers, f) }) {
			continue
		}
		if by := handover.PausedBy(app); by != "" {
			return e.blocked(ctx, st, app, nil, &waitsForPerson{"the application is paused: remove the annotation " + by})
		}
		p, err := s.do(ctx, st, app)
		switch {
		case err != nil:
			return e.blocked(ctx, st, app, p.state, err)
		case p.waits != "":
			if p.again > 0 {
				e.queue.AddAfter(st.key, queue.Drift, p.again)
			}
			return e.deletionWaits(ctx, st, app, p)
		}
		st.patience = patience{}
		return e.drop(ctx, st, app, s.finalizers)
	}
	if unknown := unknownFinalizer(app); unknown != "" {
		return e.blocked(ctx, st, app, nil, &waitsForPerson{"finalizer " + unknown + " is not known: remove it"})
	}
	return nil
}

// unknownFinalizer is one that looks like ours and asks for nothing that we know.
func unknownFinalizer(app *v1alpha1.Application) string {
	for _, f := range app.Finalizers {
		for _, known := range []string{CascadeFinalizer, PreDeleteFinalizer, PostDeleteFinalizer} {
			if strings.HasPrefix(f, known) {
				return f
			}
		}
	}
	return ""
}

// letGo takes all finalizers of ours off, because a person said so.
func (e *Engine) letGo(ctx context.Context, st *state, app *v1alpha1.Application) error {
	var ours []string
	for _, s := range e.stages() {
		ours = append(ours, s.finalizers...)
	}
	if !slices.ContainsFunc(app.Finalizers, func(f string) bool { return slices.Contains(ours, f) }) {
		return nil
	}
	e.log.Info("application let go; its objects are left behind", "application", st.key)
	e.events.add(app, "Warning", "Orphaned", OrphanAnnotation+" is set: the application's objects are left behind and its deletion hooks are not run", e.opts.Now())
	return e.drop(ctx, st, app, ours)
}

// ground is what a deletion in the cluster stands on: the project's rules and a cluster that is known.
func (e *Engine) ground(app *v1alpha1.Application) (project.Rules, error) {
	rules, ok := e.projects.rules(projectOf(app))
	if !ok {
		return rules, &waitsForPerson{fmt.Sprintf("spec.project: project %s does not exist, so that it is not known what may be deleted: create it", projectOf(app))}
	}
	if err := destination(app.Spec.Destination); err != nil {
		return rules, &waitsForPerson{err.Error() + ": set a destination that is known"}
	}
	return rules, nil
}

// waitsForPerson is no fault: nothing is tried again before somebody acts.
type waitsForPerson struct{ message string }

func (e *waitsForPerson) Error() string { return e.message }

// blocked says in the status why the deletion does not go on, and how to end it.
func (e *Engine) blocked(ctx context.Context, st *state, app *v1alpha1.Application, op *v1alpha1.OperationState, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	message := cause.Error() + "; to leave the objects behind and run no hooks, set the annotation " + OrphanAnnotation + ` to "true"`
	err := e.say(ctx, st, app, op, v1alpha1.ApplicationCondition{Type: v1alpha1.ConditionDeletionError, Message: oneLine(message)})
	var person *waitsForPerson
	if err != nil || errors.As(cause, &person) {
		return err
	}
	return cause
}

// patience is how long a deletion has waited for one thing.
type patience struct {
	what  string
	since time.Time
}

// quietWait is how long a deletion waits without a word: most are over sooner, and each word is a write.
const quietWait = 10 * time.Second

// deletionWaits says in the status what the deletion waits for, once that takes long.
func (e *Engine) deletionWaits(ctx context.Context, st *state, app *v1alpha1.Application, p pause) error {
	now := e.opts.Now()
	if st.patience.what != p.waits {
		st.patience = patience{what: p.waits, since: now}
	}
	if rest := quietWait - now.Sub(st.patience.since); rest > 0 {
		if p.state == nil && !hasCondition(app, v1alpha1.ConditionDeletionError) {
			e.queue.AddAfter(st.key, queue.Drift, rest)
			return nil
		}
		if p.state == nil {
			return e.say(ctx, st, app, nil)
		}
	}
	return e.say(ctx, st, app, p.state, v1alpha1.ApplicationCondition{Type: v1alpha1.ConditionWaitingWarning, Message: oneLine("deletion: " + p.waits + p.detail)})
}

func hasCondition(app *v1alpha1.Application, t v1alpha1.ApplicationConditionType) bool {
	return slices.ContainsFunc(app.Status.Conditions, func(c v1alpha1.ApplicationCondition) bool { return c.Type == t })
}

// say writes how the deletion stands: the conditions about it, and the operation unless op is nil.
func (e *Engine) say(ctx context.Context, st *state, app *v1alpha1.Application, op *v1alpha1.OperationState, now ...v1alpha1.ApplicationCondition) error {
	patch, err := statusPatch(app, e.deletionStatus(app, op, now...), false, op != nil && app.Annotations[RefreshAnnotation] != "")
	if err != nil || patch == nil {
		return err
	}
	return e.write(ctx, st.key, app, patch)
}

func (e *Engine) deletionStatus(app *v1alpha1.Application, op *v1alpha1.OperationState, now ...v1alpha1.ApplicationCondition) v1alpha1.ApplicationStatus {
	status := *app.Status.DeepCopy()
	status.Conditions = assess.Conditions(app.Status.Conditions, assess.Evaluated{
		Types:      []v1alpha1.ApplicationConditionType{v1alpha1.ConditionDeletionError, v1alpha1.ConditionWaitingWarning},
		Conditions: now,
	}, metav1.NewTime(e.opts.Now().Truncate(time.Second)))
	if op != nil {
		status.OperationState = op
	}
	return status
}

// drop takes finalizers off. It is refused when somebody changed the Application and we do not know of it yet.
func (e *Engine) drop(ctx context.Context, st *state, app *v1alpha1.Application, finalizers []string) error {
	if now, _ := e.applications.get(st.key); now != nil && now.UID == app.UID {
		app = now // our own status may just have been written
	}
	left := slices.DeleteFunc(slices.Clone(app.Finalizers), func(f string) bool { return slices.Contains(finalizers, f) })
	return e.setFinalizers(ctx, st, app, left)
}

func (e *Engine) setFinalizers(ctx context.Context, st *state, app *v1alpha1.Application, list []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": list, "resourceVersion": app.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("application %s: finalizers: %w", app.Name, err)
	}
	return e.write(ctx, st.key, app, patch)
}
