package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// ApprovedAnnotation on an Application holds the time at which a person confirmed what needs confirmation.
const ApprovedAnnotation = "argocd.argoproj.io/deletion-approved"

// approved tells whether a person confirmed at since or later.
func approved(app *v1alpha1.Application, since time.Time) bool {
	at, err := time.Parse(time.RFC3339, app.Annotations[ApprovedAnnotation])
	return err == nil && !at.Before(since.Truncate(time.Second))
}

// confirmation says what waits for a person and how to say yes.
func confirmation(what string, keys []manifest.Key) string {
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.String())
	}
	return fmt.Sprintf("waiting for a confirmation to %s %s: set the annotation %s to the current time (RFC 3339)",
		what, strings.Join(names, ", "), ApprovedAnnotation)
}

// validate says what makes the sync impossible before anything is touched; empty when nothing does.
func (e *Engine) validate(l *look, opts plan.Set) string {
	var broken []string
	for _, it := range l.items {
		if err := e.checkItem(it, opts); err != nil {
			broken = append(broken, err.Error())
		}
	}
	for i := range l.hooks {
		if err := l.hooks[i].problem; err != nil {
			broken = append(broken, err.Error())
		}
	}
	broken = append(broken, e.hookFaults(l, opts)...)
	switch len(broken) {
	case 0:
		return ""
	case 1:
		return broken[0] + "; nothing was applied"
	}
	return fmt.Sprintf("%s; and %d more objects have faults; nothing was applied", broken[0], len(broken)-1)
}

// hookFaults are what the schemas say to the hooks that syncs run; those of a deletion hold no sync up.
func (e *Engine) hookFaults(l *look, opts plan.Set) []string {
	var out []string
	for i := range l.hooks {
		d := &l.hooks[i]
		runs := slices.ContainsFunc(plan.HookPhases(d.GetAnnotations(), l.install), func(p plan.Phase) bool {
			return p != plan.PreDelete && p != plan.PostDelete
		})
		if !runs || d.problem != nil || d.resource.Resource == "" {
			continue
		}
		if err := e.checkSchema(d, opts); err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}

func (e *Engine) checkItem(it item, opts plan.Set) error {
	d := it.desired
	if err := sharedFault(&it, opts); err != nil {
		return err
	}
	switch {
	case d.unserved && option("SkipDryRunOnMissingResource", objectOptions(d), opts):
		return nil
	case d.problem != nil || it.inSync() || d.resource.Resource == "":
		return d.problem
	}
	return e.checkSchema(d, opts)
}

// checkSchema holds an object against the schema of its kind; fields that Validate=false drops are no fault.
func (e *Engine) checkSchema(d *desired, opts plan.Set) error {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(e.body(d)); err != nil {
		return at(d.Object, err)
	}
	if validatesLoosely(objectOptions(d), opts) {
		u, _ = e.cluster.Known(u)
	}
	if err := e.schemas(u); err != nil {
		return at(d.Object, err)
	}
	return nil
}

// namespace makes the destination namespace where the options ask for it and it is not there, and gives it the metadata of
// the policy.
func (e *Engine) namespace(ctx context.Context, l *look, opts plan.Set, dry bool) error {
	name := l.app.Spec.Destination.Namespace
	if dry || !l.makesNamespace(opts) {
		return nil
	}
	k := manifest.Key{Kind: "Namespace", Name: name}
	if err := e.cluster.Watch(ctx, k.GroupKind()); err != nil {
		return err
	}
	meta := namespaceMetadata(l.app)
	if meta == nil && givenMetadata(l.app.Status.OperationState) == nil && e.cluster.Exists(k) {
		return nil
	}
	meta = orNone(meta)
	return e.writer.Namespace(ctx, name, meta.Labels, meta.Annotations)
}
