package engine

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/settings"
)

// The annotations that mark objects of applications.
const (
	// TrackingAnnotation names the application and the object itself: app:group/Kind:namespace/name.
	TrackingAnnotation = "argocd.argoproj.io/tracking-id"
	// InstallationAnnotation names the installation, where installationID is set in argocd-cm.
	InstallationAnnotation = "argocd.argoproj.io/installation-id"
)

// marks are how objects say which application they belong to. The zero value marks by annotation.
type marks struct {
	settings.Tracking
	// home is the namespace whose applications are named without it; empty takes the application's own.
	home string
}

// instance is the name of an application in marks: that of one in another namespace begins with the namespace.
func (m marks) instance(app *v1alpha1.Application) string {
	if m.home == "" || app.Namespace == m.home {
		return app.Name
	}
	return app.Namespace + "_" + app.Name
}

// put marks an object as the application's. Marks that the source brought along are replaced.
func (m marks) put(u *unstructured.Unstructured, app *v1alpha1.Application) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, TrackingAnnotation)
	delete(annotations, InstallationAnnotation)
	if m.Method != settings.MethodLabel {
		annotations[TrackingAnnotation] = m.trackingID(app, manifest.KeyOf(u))
	}
	if m.Installation != "" {
		annotations[InstallationAnnotation] = m.Installation
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)
	if m.Method == settings.MethodLabel || m.Method == settings.MethodBoth {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[m.Label] = settings.LabelValue(m.instance(app))
		u.SetLabels(labels)
	}
}

// read finds out whom a live object belongs to. Objects of another installation belong to nobody here. Where labels
// count, a label wins over an annotation that names somebody else: the annotation may be from before.
func (m marks) read(u *unstructured.Unstructured, l *cluster.Live) {
	annotations := u.GetAnnotations()
	l.Tracking = annotations[TrackingAnnotation]
	label := ""
	if m.Method == settings.MethodLabel {
		label = u.GetLabels()[m.Label]
	}
	if l.Tracking == "" {
		l.Tracking = label
	}
	if annotations[InstallationAnnotation] != m.Installation {
		return
	}
	l.Owner = ownerOf(annotations[TrackingAnnotation], l.Key)
	if label != "" && (l.Owner == "" || settings.LabelValue(l.Owner) != label) {
		l.Owner, l.ByLabel = label, true
	}
}

// names tells whether a live object's mark names the application.
func (m marks) names(l cluster.Live, app *v1alpha1.Application) bool {
	instance := m.instance(app)
	return l.Owner == instance || l.ByLabel && l.Owner == settings.LabelValue(instance)
}

func (m marks) trackingID(app *v1alpha1.Application, k manifest.Key) string {
	ns := k.Namespace
	if ns == "" {
		ns = app.Spec.Destination.Namespace
	}
	return fmt.Sprintf("%s:%s/%s:%s/%s", m.instance(app), k.Group, k.Kind, ns, k.Name)
}

// ownerOf reads a tracking mark: the application it names, when the mark names the object k itself; a mark that was
// copied from another object names nobody.
func ownerOf(id string, k manifest.Key) string {
	app, rest, ok := strings.Cut(id, ":")
	if !ok {
		return ""
	}
	kind, object, ok := strings.Cut(rest, ":")
	ns, name, ok2 := strings.Cut(object, "/")
	if !ok || !ok2 || kind != k.Group+"/"+k.Kind || name != k.Name || k.Namespace != "" && ns != k.Namespace {
		return ""
	}
	return app
}

// marked are the keys of the applications that a live object's mark names: several, where a label holds only the beginning
// of their names.
func (e *Engine) marked(l cluster.Live) []string {
	if l.Owner == "" {
		return nil
	}
	keys := []string{e.applications.keyOf(l.Owner)}
	const cut = 32 // a label that names more than one application is at least so long
	if !l.ByLabel || len(l.Owner) < cut {
		return keys
	}
	m := e.marks()
	e.applications.each(func(app *v1alpha1.Application) {
		if name := m.instance(app); name != l.Owner && settings.LabelValue(name) == l.Owner {
			keys = append(keys, e.applications.key(app.Name))
		}
	})
	return keys
}

// owned are the live objects whose mark names the application.
func (e *Engine) owned(app *v1alpha1.Application) []cluster.Live {
	m := e.marks()
	instance := m.instance(app)
	out := e.cluster.Owned(instance)
	if label := settings.LabelValue(instance); m.Method == settings.MethodLabel && label != instance {
		out = append(out, e.cluster.Owned(label)...)
	}
	return out
}

// proven tells that an object which is marked as the application's was really applied for it: a mark in the annotation
// names the object itself; a label may be copied and needs our own record besides (DESIGN.md §2.5).
func (st *state) proven(l cluster.Live) bool {
	if !l.ByLabel {
		return true
	}
	_, applied := st.proofs[l.Key]
	return applied
}

// recall notes, where labels count, declared objects that carry the application's label and our entry as applied, and those
// to which Argo CD gave the label: an application that was adopted in step is not applied again. It forgets those that are
// gone: the record may have been lost, and must not outlive its object.
func (e *Engine) recall(st *state, l *look) {
	if e.marks().Method != settings.MethodLabel {
		return
	}
	changed := false
	for _, it := range l.items {
		if _, known := st.proofs[it.desired.key]; !known && it.exists && (it.live.Entry != "" || it.live.ByArgoCD) && e.marks().names(it.live, l.app) {
			st.proofs[it.desired.key], changed = compare.Pair{}, true
		}
	}
	for k := range st.proofs {
		if _, declared := l.set.byKey[k]; !declared && !e.cluster.Exists(k) {
			delete(st.proofs, k)
			changed = true
		}
	}
	if !changed {
		return
	}
	if err := e.opts.Records.Save(st.key, st.proofs); err != nil {
		e.log.Warn("proofs", "application", st.key, "error", err)
	}
}
