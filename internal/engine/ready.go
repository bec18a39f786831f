package engine

import (
	"context"
	"fmt"
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
	switch len(broken) {
	case 0:
		return ""
	case 1:
		return broken[0] + "; nothing was applied"
	}
	return fmt.Sprintf("%s; and %d more objects have faults; nothing was applied", broken[0], len(broken)-1)
}

func (e *Engine) checkItem(it item, opts plan.Set) error {
	if it.desired.problem != nil || it.inSync() || it.desired.resource.Resource == "" || validatesLoosely(objectOptions(it.desired), opts) {
		return it.desired.problem
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(e.body(it.desired)); err != nil {
		return at(it.desired.Object, err)
	}
	if err := e.schemas(u); err != nil {
		return at(it.desired.Object, err)
	}
	return nil
}

// namespace makes the destination namespace where the options ask for it and it is not there.
func (e *Engine) namespace(ctx context.Context, l *look, opts plan.Set, dry bool) error {
	name := l.app.Spec.Destination.Namespace
	if dry || !opts.Has("CreateNamespace=true") || name == "" {
		return nil
	}
	k := manifest.Key{Kind: "Namespace", Name: name}
	if _, declared := l.set.byKey[k]; declared {
		return nil
	}
	if err := e.cluster.Watch(ctx, k.GroupKind()); err != nil {
		return err
	}
	meta := (*v1alpha1.ManagedNamespaceMetadata)(nil)
	if l.app.Spec.SyncPolicy != nil {
		meta = l.app.Spec.SyncPolicy.ManagedNamespaceMetadata
	}
	exists := e.cluster.Exists(k)
	if exists && meta == nil {
		return nil
	}
	if meta == nil {
		meta = &v1alpha1.ManagedNamespaceMetadata{}
	}
	return e.writer.Namespace(ctx, name, meta.Labels, meta.Annotations)
}
