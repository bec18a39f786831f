package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// manner is how one object is written, by the sync options of the application, of the object and of the operation
// (contract §1.3). The object's own word counts more than the application's.
type manner struct {
	// replace puts the object as Git has it in place of the live one, fields of others included.
	replace bool
	// force deletes and makes anew an object that the API server refuses to change; together with replace it always does.
	force bool
	// loose drops fields that the kind does not have, where they would be an error.
	loose bool
}

// option reads a sync option with the values true and false.
func option(name string, object, application plan.Set) bool {
	switch v, found := object.Value(name); {
	case found && v == "true":
		return true
	case found && v == "false":
		return false
	}
	return application.Has(name + "=true")
}

func objectOptions(d *desired) plan.Set {
	return plan.ParseOptions(d.GetAnnotations()[plan.SyncOptionsAnnotation])
}

func mannerOf(d *desired, s *v1alpha1.SyncOperation, opts plan.Set) manner {
	own := objectOptions(d)
	m := manner{replace: option("Replace", own, opts), force: own.Has("Force=true"), loose: validatesLoosely(own, opts)}
	if by := s.SyncStrategy; by != nil && !keptFromForce(d, own) {
		m.force = m.force || by.Apply != nil && by.Apply.Force || by.Hook != nil && by.Hook.Force
	}
	m.force = m.force && !holdsOthers(d.key)
	return m
}

func validatesLoosely(object, application plan.Set) bool {
	v, found := object.Value("Validate")
	return found && v == "false" || !found && application.Has("Validate=false")
}

// holdsOthers names the kinds that take all that lives in them along: nothing makes them anew, and a replacement is an update.
func holdsOthers(k manifest.Key) bool {
	return k.Group == "" && k.Kind == "Namespace" || k.Group == "apiextensions.k8s.io" && k.Kind == "CustomResourceDefinition"
}

// keptFromForce tells that an object is made anew only if its own annotation says so, not by a force for the whole sync:
// kinds that take data with them, and what somebody wants kept when other objects are deleted.
func keptFromForce(d *desired, own plan.Set) bool {
	if d.key.Group == "" && slices.Contains([]string{"PersistentVolumeClaim", "PersistentVolume"}, d.key.Kind) {
		return true
	}
	return d.GetAnnotations()["helm.sh/resource-policy"] == "keep" ||
		slices.ContainsFunc([]string{"Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm"}, own.Has)
}

// waitError is nobody's fault: something has to be gone first.
type waitError struct{ text string }

func (e *waitError) Error() string { return e.text }

// send writes an object in its manner and answers it as it is then.
func (e *Engine) send(ctx context.Context, st *state, l *look, it *item, opts plan.Set) (*unstructured.Unstructured, error) {
	op := st.running.op.Sync
	m, d := mannerOf(it.desired, op, opts), it.desired
	mode := apply.Mode{DryRun: op.DryRun, Loose: m.loose}
	if d.resource.Resource == "" { // somebody whom an earlier wave has started may define its kind
		if _, err := e.cluster.Kind(d.GroupVersionKind()); err != nil {
			return nil, &waitError{"waiting for a kind to be served: " + err.Error()}
		}
		return nil, &waitError{d.key.String() + ": its kind is served now"} // the next look knows its scope, and what the project says to it
	}
	named := it.exists && d.applied()
	if named && it.live.Deleting && m.force && !mode.DryRun {
		return nil, &waitError{"waiting for " + d.key.String() + " to be gone, to make it anew"}
	}
	if named && m.force && m.replace {
		return e.anew(ctx, it, mode)
	}
	var out *unstructured.Unstructured
	var err error
	if named && m.replace {
		out, err = e.replace(ctx, st, l.app, it, mode, opts)
	} else {
		out, err = e.adopt(ctx, st, l.app, it, mode, opts)
	}
	if named && m.force && refusesChange(err) {
		var refused *apply.Error
		_ = errors.As(err, &refused) // it is one, as refusesChange says
		out, err = e.anew(ctx, it, mode)
		return out, because(refused.Reason+"; ", err)
	}
	return out, err
}

// because puts the beginning of the sentence before a refusal; other errors stay as they are.
func because(beginning string, err error) error {
	var refused *apply.Error
	if !errors.As(err, &refused) || refused.Retry {
		return err
	}
	whole := *refused
	whole.Reason = beginning + refused.Reason
	return &whole
}

// refusesChange tells that an object can not become what it is to be: a field that may not change.
func refusesChange(err error) bool {
	var refused *apply.Error
	return errors.As(err, &refused) && apierrors.IsInvalid(err)
}

// anew deletes the object; it is made when it is gone. What could not be made then is not deleted.
func (e *Engine) anew(ctx context.Context, it *item, mode apply.Mode) (*unstructured.Unstructured, error) {
	d := it.desired
	body, err := e.prepared(ctx, d, false, mode.Loose)
	if err != nil {
		return nil, err
	}
	if err := e.writer.Trial(ctx, target(d.resource), d.key, body, mode); err != nil {
		return nil, because("was not deleted to be made anew, since that would be refused: ", err)
	}
	gone := apply.Gone{Key: d.key, UID: it.live.UID, Propagation: metav1.DeletePropagationBackground, DryRun: mode.DryRun}
	if err := e.erase(ctx, d.resource, gone); err != nil {
		return nil, err
	}
	if mode.DryRun {
		return e.cluster.Get(ctx, d.resource, d.key)
	}
	return nil, &waitError{"waiting for " + d.key.String() + " to be gone, to make it anew"}
}

// replace puts the object in the place of the live one, for the version that was read, and applies it then, so that it is
// ours as any other. Ignored fields that are respected stay.
func (e *Engine) replace(ctx context.Context, st *state, app *v1alpha1.Application, it *item, mode apply.Mode, opts plan.Set) (*unstructured.Unstructured, error) {
	for try := 0; ; try++ {
		live, err := e.cluster.Get(ctx, it.desired.resource, it.desired.key)
		if apierrors.IsNotFound(err) {
			return e.put(ctx, st, it, mode, opts)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it.desired.key, err)
		}
		body, err := e.replacement(ctx, st, it.desired, live, opts, mode.Loose)
		if err != nil {
			return nil, err
		}
		r := apply.Replacement{Body: body, Live: live, From: predecessors(app, opts)}
		out, err := e.writer.Replace(ctx, target(it.desired.resource), it.desired.key, r, mode)
		switch {
		case try < raceLimit && apierrors.IsConflict(err):
			continue
		case err != nil || mode.DryRun:
			return out, err
		}
		return e.put(ctx, st, it, mode, opts)
	}
}

// replacement is the body that replaces the live object.
func (e *Engine) replacement(ctx context.Context, st *state, d *desired, live *unstructured.Unstructured, opts plan.Set, loose bool) ([]byte, error) {
	body, err := e.prepared(ctx, d, true, loose)
	ignore := st.ignoring.rules.For(d.key)
	if err != nil || ignore.Empty() || !opts.Has(respectOption) {
		return body, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("%s: %w", d.key, err)
	}
	mixed, changed, err := ignore.Keep(ctx, u.Object, live, TrackingAnnotation)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.key, err)
	}
	if !changed {
		return body, nil
	}
	return json.Marshal(mixed)
}

// prepared is what is sent for an object: generated fields as they are, and, loosely, without unknown fields.
func (e *Engine) prepared(ctx context.Context, d *desired, exists, loose bool) ([]byte, error) {
	body, err := e.bodyFor(ctx, d, exists)
	if err != nil || !loose {
		return body, err
	}
	body, _, err = known(e.cluster, body)
	return body, err
}

// known is body without the fields that its kind does not have, and their paths.
func known(c *cluster.Cluster, body []byte) ([]byte, []string, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, nil, err
	}
	kept, dropped := c.Known(u)
	if len(dropped) == 0 {
		return body, nil, nil
	}
	body, err := json.Marshal(kept.Object)
	return body, dropped, err
}

// leftOut warns of the fields that Validate=false drops. They are looked for once for each set and policy.
func (e *Engine) leftOut(app *v1alpha1.Application, set *desiredSet) []v1alpha1.ApplicationCondition {
	opts := syncOptions(app, &v1alpha1.SyncOperation{})
	byAll := validatesLoosely(nil, opts)
	if set.dropped == nil || set.loose != byAll {
		set.dropped, set.loose = append(e.dropped(set.objects, opts), e.dropped(set.hooks, opts)...), byAll
	}
	return set.dropped
}

// dropped are the warnings for the objects of a list; never nil.
func (e *Engine) dropped(list []desired, opts plan.Set) []v1alpha1.ApplicationCondition {
	out := []v1alpha1.ApplicationCondition{}
	for i := range list {
		d := &list[i]
		if !validatesLoosely(objectOptions(d), opts) || d.problem != nil || d.resource.Resource == "" {
			continue
		}
		_, dropped, err := known(e.cluster, e.body(d))
		if err != nil {
			continue // it is told where it is sent
		}
		for _, field := range dropped {
			out = append(out, v1alpha1.ApplicationCondition{
				Type:    v1alpha1.ConditionRenderWarning,
				Message: at(d.Object, fmt.Errorf("%s is no field of this kind and is left out, as Validate=false asks", field)).Error(),
			})
		}
	}
	return out
}
