package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/assess"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// Compared revisions that changed alone are written within housekeepingSpan, and sooner where few applications make few
// writes: revisionWrites of them a second (DESIGN.md §2.2).
const (
	housekeepingSpan = 10 * time.Minute
	revisionWrites   = 5
)

// report writes what was found, if it differs from what the custom resource says.
func (e *Engine) report(ctx context.Context, st *state, l *look, out outcome) error {
	now := metav1.NewTime(e.opts.Now().Truncate(time.Second))
	status := e.assess(l, out, now)
	status.Health.Message = e.whys.tell(st.key, l.unwell(status), l.app.Status.Health)
	asked := l.app.Annotations[RefreshAnnotation] != ""
	if !asked && !out.taken && e.revisionOnly(l.app.Status, status) && e.postpone(st) {
		return nil
	}
	patch, err := statusPatch(l.app, status, out.taken, asked)
	if err == nil {
		patch, err = annotate(patch, pinChange(l.app, l, out))
	}
	st.revisionDue.Store(0)
	if err != nil || patch == nil {
		return err
	}
	err = e.write(ctx, st.key, l.app, patch)
	if apierrors.IsConflict(err) {
		return e.writeAgain(ctx, st, l, patch)
	}
	return err
}

// write sends a patch for the Application and takes in the answer, so that the next look sees it.
func (e *Engine) write(ctx context.Context, appKey string, app *v1alpha1.Application, patch []byte) error {
	k := manifest.Key{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationKind, Namespace: app.Namespace, Name: app.Name}
	t := apply.Target{Resource: v1alpha1.Applications(), Namespaced: true, Patchable: true}
	u, err := e.writer.Merge(ctx, t, k, patch)
	if apierrors.IsNotFound(err) {
		return nil // it was deleted meanwhile; the watch says so too
	}
	if err != nil {
		return err
	}
	e.opts.Metrics.statusWrites.Inc()
	e.applications.answered(u)
	return nil
}

// assess makes the status out of what was found.
func (e *Engine) assess(l *look, out outcome, now metav1.Time) v1alpha1.ApplicationStatus {
	old := l.app.Status
	s := *old.DeepCopy()
	s.ControllerNamespace = e.opts.Namespace
	s.ResourceHealthSource = v1alpha1.ResourceHealthAppTree
	if out.state != nil {
		s.OperationState = out.state
	}
	if out.deployed != nil {
		s.History = assess.History(old.History, *out.deployed, l.app.Spec.RevisionHistoryLimit)
	}
	s.Conditions = assess.Conditions(old.Conditions, l.conditions(out, s.OperationState), now)
	s.Sync.ComparedTo = comparedTo(l.app)
	if !l.compared() {
		s.Sync.Status = v1alpha1.SyncUnknown
		if l.set == nil {
			if s.Health.Status == "" {
				s.Health = assess.Transition(old.Health, v1alpha1.AppHealthStatus{Status: v1alpha1.HealthUnknown}, now)
			}
			return s
		}
	}
	items := l.assessed()
	if l.compared() {
		s.Sync.Status = assess.Sync(items)
		if l.namespaceDiffers(s.OperationState) {
			s.Sync.Status = v1alpha1.SyncOutOfSync
		}
	}
	s.Health = assess.Transition(old.Health, assess.Health(items), now)
	s.Sync.Revision, s.Sync.Revisions = "", nil
	s.SourceType, s.SourceTypes = "", nil
	if len(l.app.Spec.Sources) > 0 {
		s.Sync.Revisions, s.SourceTypes = l.rendering.revisions, l.rendering.types
	} else {
		s.Sync.Revision, s.SourceType = first(l.rendering.revisions), first(l.rendering.types)
	}
	s.Resources = l.resources()
	s.Summary = assess.Summary(assess.Links(l.app.Annotations), l.facts())
	if !sameJSON(old, s) || l.app.Annotations[RefreshAnnotation] != "" {
		s.ReconciledAt = &now
	}
	return s
}

func comparedTo(app *v1alpha1.Application) v1alpha1.ComparedTo {
	c := v1alpha1.ComparedTo{Destination: app.Spec.Destination, IgnoreDifferences: app.Spec.IgnoreDifferences}
	if len(app.Spec.Sources) > 0 {
		c.Sources = app.Spec.Sources
	} else {
		c.Source = first(effective(app.Spec))
	}
	return c
}

// conditions are what is wrong now, among the types that a look evaluates.
func (l *look) conditions(out outcome, op *v1alpha1.OperationState) assess.Evaluated {
	found := assess.Evaluated{Types: []v1alpha1.ApplicationConditionType{
		v1alpha1.ConditionInvalidSpecError, v1alpha1.ConditionComparisonError,
	}}
	add := func(t v1alpha1.ApplicationConditionType, message string) {
		found.Conditions = append(found.Conditions, v1alpha1.ApplicationCondition{Type: t, Message: oneLine(message)})
	}
	if l.invalid != nil {
		add(v1alpha1.ConditionInvalidSpecError, l.invalid.Error())
	}
	if l.failed != nil {
		add(v1alpha1.ConditionComparisonError, l.failed.Error())
	}
	if !l.compared() {
		return found
	}
	found.Types = append(found.Types, v1alpha1.ConditionSyncError, v1alpha1.ConditionSharedResourceWarning,
		v1alpha1.ConditionRepeatedResourceWarning, v1alpha1.ConditionRenderWarning, v1alpha1.ConditionUnsupportedWarning, v1alpha1.ConditionWaitingWarning,
		v1alpha1.ConditionOrphanedResourceWarning)
	found.Conditions = append(found.Conditions, l.warnings...)
	for _, w := range l.rendering.warnings {
		add(v1alpha1.ConditionRenderWarning, w)
	}
	for _, it := range l.items {
		if it.holder != "" {
			add(v1alpha1.ConditionSharedResourceWarning, it.desired.key.String()+" belongs to application "+it.holder+", which declares it too")
		}
	}
	switch {
	case out.refusal != "":
		add(v1alpha1.ConditionSyncError, out.refusal)
	case out.rests != "":
		add(v1alpha1.ConditionWaitingWarning, out.rests)
	case op != nil && (op.Phase == v1alpha1.OperationFailed || op.Phase == v1alpha1.OperationError) && !gaveWay(op) && l.outOfSync() && automated(l.app).Enabled:
		add(v1alpha1.ConditionSyncError, op.Message+"; the sync is tried again when the source or the spec changes")
	}
	return found
}

func oneLine(s string) string {
	const limit = 4096
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return s
}

// assessed are the objects as the assessment wants them.
func (l *look) assessed() []assess.Item {
	items := make([]assess.Item, 0, len(l.items)+len(l.extras))
	for _, it := range l.items {
		code := v1alpha1.SyncOutOfSync
		if it.verdict == compare.Equal {
			code = v1alpha1.SyncSynced
		}
		items = append(items, assess.Item{
			Key: it.desired.key, Live: it.exists, HasHealth: it.live.HasHealth, Health: it.live.Health, Sync: code,
			IgnoreHealth: it.desired.GetAnnotations()[ignoreHealthAnnotation] == "true",
			Self:         isSelf(l.app, it.live),
		})
	}
	for _, x := range l.extras {
		code := v1alpha1.SyncOutOfSync
		if x.Controlled || compare.IgnoresExtraneous(x.Steering) {
			code = ""
		}
		items = append(items, assess.Item{Key: x.Key, Live: true, HasHealth: x.HasHealth && !x.Controlled, Health: x.Health, Sync: code})
	}
	return items
}

func (l *look) resources() []v1alpha1.ResourceStatus {
	out := make([]v1alpha1.ResourceStatus, 0, len(l.items)+len(l.extras))
	for i, a := range l.assessed() {
		r := v1alpha1.ResourceStatus{Group: a.Key.Group, Kind: a.Key.Kind, Namespace: a.Key.Namespace, Name: a.Key.Name, Status: a.Sync}
		if i < len(l.items) {
			d := l.items[i].desired
			r.Version = d.GroupVersionKind().Version
			r.SyncWave = wave(d)
		} else {
			r.Version, r.RequiresPruning = l.extras[i-len(l.items)].Version, a.Sync != ""
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b v1alpha1.ResourceStatus) int {
		return compareKeys(manifest.Key{Group: a.Group, Kind: a.Kind, Namespace: a.Namespace, Name: a.Name},
			manifest.Key{Group: b.Group, Kind: b.Kind, Namespace: b.Namespace, Name: b.Name})
	})
	return out
}

func (l *look) facts() []assess.Facts {
	out := make([]assess.Facts, 0, len(l.items))
	for _, it := range l.items {
		out = append(out, factsOf(it.live))
	}
	return out
}

func factsOf(x cluster.Live) assess.Facts {
	return assess.Facts{Images: x.Images, URLs: x.URLs, Application: x.Key.Group == v1alpha1.Group && x.Key.Kind == v1alpha1.ApplicationKind}
}

// revisionOnly tells that nothing but the compared revision moved.
func (e *Engine) revisionOnly(old, now v1alpha1.ApplicationStatus) bool {
	if sameJSON(old.Sync.Revision, now.Sync.Revision) && sameJSON(old.Sync.Revisions, now.Sync.Revisions) {
		return false
	}
	now.Sync.Revision, now.Sync.Revisions = old.Sync.Revision, old.Sync.Revisions
	now.ReconciledAt = old.ReconciledAt
	return sameJSON(old, now)
}

// postpone puts such a write off until its turn.
func (e *Engine) postpone(st *state) bool {
	now := e.opts.Now()
	due := st.dueAt(now, func() time.Duration { return e.turnOf(st.key) })
	if !now.Before(due) {
		return false
	}
	e.queue.AddAfter(st.key, queue.Housekeeping, due.Sub(now))
	return true
}

// statusPatch is the smallest merge patch that makes the custom resource say status; nil when it does already.
func statusPatch(app *v1alpha1.Application, status v1alpha1.ApplicationStatus, taken, refreshed bool) ([]byte, error) {
	old, err := json.Marshal(map[string]any{"status": app.Status})
	if reflect.ValueOf(app.Status).IsZero() { // never written: an empty text that the definition demands is no "as before"
		old, err = []byte(`{"status":{}}`), nil
	}
	if err != nil {
		return nil, fmt.Errorf("application %s: status: %w", app.Name, err)
	}
	now, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, fmt.Errorf("application %s: status: %w", app.Name, err)
	}
	patch, err := jsonpatch.CreateMergePatch(old, now)
	if err != nil {
		return nil, fmt.Errorf("application %s: status: %w", app.Name, err)
	}
	if !taken && !refreshed {
		if string(patch) == "{}" {
			return nil, nil
		}
		return patch, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, fmt.Errorf("application %s: status: %w", app.Name, err)
	}
	// Only in the version that was looked at: a request that came meanwhile is another one.
	meta := map[string]any{"resourceVersion": app.ResourceVersion}
	fields["metadata"] = meta
	if taken {
		fields["operation"] = nil
	}
	if refreshed {
		meta["annotations"] = map[string]any{RefreshAnnotation: nil, refreshTimestampAnnotation: nil}
	}
	return json.Marshal(fields)
}
