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
	if by := s.SyncStrategy; by != nil && !holdsMuch(d.key) {
		m.force = m.force || by.Apply != nil && by.Apply.Force || by.Hook != nil && by.Hook.Force
	}
	if d.key.Kind == "Namespace" && d.key.Group == "" || isDefinition(d.key) {
		m.force = false // whatever lives in them would go, too; a replacement is an update
	}
	return m
}

func validatesLoosely(object, application plan.Set) bool {
	v, found := object.Value("Validate")
	return found && v == "false" || !found && application.Has("Validate=false")
}

func isDefinition(k manifest.Key) bool {
	return k.Group == "apiextensions.k8s.io" && k.Kind == "CustomResourceDefinition"
}

// holdsMuch names the kinds that take data with them: only their own annotation makes them anew, no option for all.
func holdsMuch(k manifest.Key) bool {
	return k.Group == "" && slices.Contains([]string{"PersistentVolumeClaim", "PersistentVolume"}, k.Kind)
}

// waitError is nobody's fault: something has to be gone first.
type waitError struct{ text string }

func (e *waitError) Error() string { return e.text }

// send writes an object in its manner and answers it as it is then.
func (e *Engine) send(ctx context.Context, st *state, l *look, it *item, opts plan.Set) (*unstructured.Unstructured, error) {
	op := st.running.op.Sync
	m, d := mannerOf(it.desired, op, opts), it.desired
	mode := apply.Mode{DryRun: op.DryRun, Loose: m.loose}
	if d.resource.Resource == "" {
		var err error
		if d.resource, err = e.cluster.Kind(d.GroupVersionKind()); err != nil {
			return nil, &waitError{"waiting for a kind to be served: " + err.Error()} // somebody whom an earlier wave has started may define it
		}
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
		out, err = e.replace(ctx, d, mode)
	} else {
		out, err = e.adopt(ctx, st, l.app, it, mode, opts)
	}
	if named && m.force && refusesChange(err) {
		return e.anew(ctx, it, mode)
	}
	return out, err
}

// refusesChange tells that an object can not become what it is to be: a field that may not change.
func refusesChange(err error) bool {
	var refused *apply.Error
	return errors.As(err, &refused) && apierrors.IsInvalid(err)
}

// anew deletes the object; it is made when it is gone.
func (e *Engine) anew(ctx context.Context, it *item, mode apply.Mode) (*unstructured.Unstructured, error) {
	d := it.desired
	gone := apply.Gone{Key: d.key, UID: it.live.UID, Propagation: metav1.DeletePropagationBackground, DryRun: mode.DryRun}
	if err := e.writer.Delete(ctx, target(d.resource), gone); err != nil {
		return nil, err
	}
	if mode.DryRun {
		return e.cluster.Get(ctx, d.resource, d.key)
	}
	return nil, &waitError{"waiting for " + d.key.String() + " to be gone, to make it anew"}
}

// replace puts the object in the place of the live one, for the version that was read.
func (e *Engine) replace(ctx context.Context, d *desired, mode apply.Mode) (*unstructured.Unstructured, error) {
	for try := 0; ; try++ {
		live, err := e.cluster.Get(ctx, d.resource, d.key)
		if apierrors.IsNotFound(err) {
			body, err := e.prepared(ctx, d, false, mode.Loose)
			if err != nil {
				return nil, err
			}
			return e.writer.Apply(ctx, target(d.resource), d.key, body, mode)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.key, err)
		}
		body, err := e.prepared(ctx, d, true, mode.Loose)
		if err != nil {
			return nil, err
		}
		out, err := e.writer.Replace(ctx, target(d.resource), d.key, apply.Replacement{Body: body, Live: live}, mode)
		if try < raceLimit && apierrors.IsConflict(err) {
			continue
		}
		return out, err
	}
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

// leftOut warns of the fields that Validate=false drops.
func (e *Engine) leftOut(app *v1alpha1.Application, set *desiredSet) []v1alpha1.ApplicationCondition {
	var out []v1alpha1.ApplicationCondition
	opts := syncOptions(app, &v1alpha1.SyncOperation{})
	for i := range set.objects {
		d := &set.objects[i]
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
