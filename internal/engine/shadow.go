package engine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/assess"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/settings"
)

// Shadow is how Lockstep sees an application that Argo CD keeps, at the revision that Argo CD compared last.
type Shadow struct {
	// Revisions are those that were rendered, in the order of the sources.
	Revisions []string
	// Objects are all that are declared, and those that left the source.
	Objects []Difference
	// Rendering tells whether Lockstep renders what Argo CD has applied.
	Rendering compare.Likeness
	// Sync and Health are those of the application as Lockstep would report them.
	Sync   v1alpha1.SyncStatusCode
	Health v1alpha1.AppHealthStatus
}

// Shadow looks at an application as Diff does; nothing is written.
func (p *Preview) Shadow(ctx context.Context, app *v1alpha1.Application, rules project.Rules) (Shadow, error) {
	if err := destination(app.Spec.Destination); err != nil {
		return Shadow{}, err
	}
	fixed := comparedRevisions(app)
	all, err := p.Diff(ctx, app, rules, fixed...)
	if err != nil {
		return Shadow{}, err
	}
	s := Shadow{Revisions: fixed, Objects: all, Rendering: likeness(app, all)}
	items := make([]assess.Item, 0, len(all))
	for _, d := range all {
		items = append(items, d.item(app))
	}
	s.Sync = assess.Sync(items)
	s.Health = assess.Transition(app.Status.Health, assess.Health(items), metav1.Time{})
	return s, nil
}

// comparedRevisions are those of the last comparison, by whoever made it; none where there was none.
func comparedRevisions(app *v1alpha1.Application) []string {
	s := app.Status.Sync
	if len(app.Spec.Sources) > 0 {
		if len(s.Revisions) == len(app.Spec.Sources) {
			return s.Revisions
		}
		return nil
	}
	if s.Revision == "" {
		return nil
	}
	return []string{s.Revision}
}

// item is the object as the assessment of the application wants it.
func (d Difference) item(app *v1alpha1.Application) assess.Item {
	code := v1alpha1.SyncOutOfSync
	if d.Verdict == compare.Equal {
		code = v1alpha1.SyncSynced
	}
	return assess.Item{
		Key: d.Key, Live: d.Live != nil, HasHealth: d.seen.HasHealth, Health: d.seen.Health, Sync: code,
		IgnoreHealth: d.ignoreHealth, Self: isSelf(app, d.seen),
	}
}

// likeness is that of the whole application: one object that is rendered another way makes it so. An object that Argo CD
// declares and Lockstep does not, or the other way round where Argo CD is in step, is such a one.
func likeness(app *v1alpha1.Application, all []Difference) compare.Likeness {
	theirs := map[manifest.Key]v1alpha1.ResourceStatus{}
	for _, r := range app.Status.Resources {
		theirs[manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}] = r
	}
	whole := compare.Alike
	for _, d := range all {
		r, known := theirs[d.Key]
		switch {
		case d.Extra && !r.RequiresPruning, d.Rendering == compare.Unlike, !d.Extra && !known && app.Status.Sync.Status == v1alpha1.SyncSynced:
			return compare.Unlike
		case !d.Extra && d.Rendering == compare.Unknown:
			whole = compare.Unknown
		}
	}
	return whole
}

// renderedAs fills in how what Argo CD has applied relates to what is declared.
func (d *Difference) renderedAs(app *v1alpha1.Application, declared, live, normal *unstructured.Unstructured) error {
	note, noted := live.GetAnnotations()[ownership.LastApplied]
	if !noted {
		var err error
		d.Rendering, d.Unlike, err = compare.Declared(live, normal, isMark)
		return err
	}
	sent := &unstructured.Unstructured{}
	if err := sent.UnmarshalJSON([]byte(note)); err != nil {
		return nil // somebody wrote the annotation by hand: nothing is known
	}
	sent, err := apply.Clean(sent)
	if err != nil {
		return fmt.Errorf("%s: annotation %s: %w", d.Key, ownership.LastApplied, err)
	}
	d.Rendering, d.Unlike = compare.Sent(unmarked(app, sent, declared), unmarked(app, declared, sent))
	return nil
}

// unmarked is u without what only marks its owner: the tracking annotations, and the tracking label where the other has none.
func unmarked(app *v1alpha1.Application, u, other *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	annotations, labels := u.GetAnnotations(), u.GetLabels()
	for _, mark := range trackingAnnotations() {
		delete(annotations, mark)
	}
	if _, both := other.GetLabels()[settings.DefaultInstanceLabel]; !both && labels[settings.DefaultInstanceLabel] == app.Name {
		delete(labels, settings.DefaultInstanceLabel)
	}
	u.SetAnnotations(annotations)
	u.SetLabels(labels)
	return u
}

// ignoreHealthAnnotation set to "true" leaves an object out of the application's health.
const ignoreHealthAnnotation = "argocd.argoproj.io/ignore-healthcheck"

func trackingAnnotations() []string {
	return []string{TrackingAnnotation, "argocd.argoproj.io/installation-id"}
}

// isMark tells whether a field only marks the owner.
func isMark(p fieldpath.Path) bool {
	if len(p) != 3 || p[0].FieldName == nil || p[1].FieldName == nil || p[2].FieldName == nil || *p[0].FieldName != "metadata" {
		return false
	}
	switch name := *p[2].FieldName; *p[1].FieldName {
	case "annotations":
		return slices.Contains(trackingAnnotations(), name)
	case "labels":
		return name == settings.DefaultInstanceLabel
	}
	return false
}
