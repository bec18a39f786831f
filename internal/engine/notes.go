package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// What decides over an operation, or over those after it, is noted in the operation's info: it stands in the custom resource,
// so that it holds when the data directory is lost and when another process goes on (DESIGN.md §2.5). The note on an install
// is in hooks.go.
const (
	// renderingNote is what a sync works on: goal and means, see look.
	renderingNote = "lockstep.dev/rendering"
	// attemptedNote is what the last whole sync tried and what came of it, kept by operations that are none.
	attemptedNote = "lockstep.dev/attempted"
	// supersededNote counts the syncs in a row that gave way to a newer one before this.
	supersededNote = "lockstep.dev/superseded"
	// supersedesNote names the revision whose sync gave way to this one.
	supersedesNote = "lockstep.dev/supersedes"
	// healsNote holds how often objects were put back lately, see heals.
	healsNote = "lockstep.dev/heals"
	// failingNote is why the attempt failed, while the hooks of SyncFail run.
	failingNote = "lockstep.dev/failing"
	// localNote is how many manifests a sync was given that did not come from the source.
	localNote = "lockstep.dev/local-manifests"
)

// noted is the note of that name in an operation; empty when there is none.
func noted(op *v1alpha1.Operation, name string) string {
	for _, info := range op.Info {
		if info != nil && info.Name == name {
			return info.Value
		}
	}
	return ""
}

// noteDown sets a note of the operation; an empty value removes it.
func (r *running) noteDown(name, value string) {
	r.op.Info = slices.DeleteFunc(r.op.Info, func(i *v1alpha1.Info) bool { return i == nil || i.Name == name })
	if value != "" {
		r.op.Info = append(r.op.Info, &v1alpha1.Info{Name: name, Value: value})
	}
}

// withoutNotes is an operation as people ask for it: notes that decide are ours alone.
func withoutNotes(op v1alpha1.Operation) v1alpha1.Operation {
	ours := []string{installInfo, deletionInfo, renderingNote, attemptedNote, supersededNote, supersedesNote, healsNote, failingNote, localNote}
	out := *op.DeepCopy()
	out.Info = slices.DeleteFunc(out.Info, func(i *v1alpha1.Info) bool { return i == nil || slices.Contains(ours, i.Name) })
	return out
}

// attempt is what a whole sync tried: goal is what the sources rendered to and where that goes, means is what else may let
// the same goal fail once and succeed another time.
type attempt struct {
	goal, means string
	failed      bool
}

// nothing is the goal of no application.
const nothing = "-"

// lastAttempt is what the last whole sync tried; false when its operation has no note of it, as those of Argo CD.
func lastAttempt(app *v1alpha1.Application) (attempt, bool) {
	last := app.Status.OperationState
	if last == nil {
		return attempt{}, false
	}
	if f := strings.Fields(noted(&last.Operation, attemptedNote)); len(f) == 3 {
		return attempt{goal: f[0], means: f[1], failed: f[2] == "failed"}, true
	}
	if f := strings.Fields(noted(&last.Operation, renderingNote)); len(f) == 2 {
		return attempt{goal: f[0], means: f[1], failed: last.Phase == v1alpha1.OperationFailed || last.Phase == v1alpha1.OperationError}, true
	}
	return attempt{}, false
}

// String is the note that keeps the attempt.
func (a attempt) String() string {
	outcome := "ended"
	if a.failed {
		outcome = "failed"
	}
	return strings.Join([]string{a.goal, a.means, outcome}, " ")
}

// keep notes in an operation that is no attempt at the application as a whole what is known of the last one.
func (r *running) keep(app *v1alpha1.Application) {
	last, known := lastAttempt(app)
	if !known || r.local() {
		last = attempt{goal: nothing, means: nothing}
	}
	r.noteDown(attemptedNote, last.String())
	if app.Status.OperationState != nil {
		r.noteDown(healsNote, noted(&app.Status.OperationState.Operation, healsNote))
	}
}

// goal is what the application's sources render to and where that goes. A sync to another one is a newer sync.
func (l *look) goal() string { return goalOf(l.rendering.digest, l.app) }

func goalOf(digest string, app *v1alpha1.Application) string {
	return fingerprint(digest, app.Spec.Destination)
}

// means is what besides the goal decides over the success of a sync: options, and what makes objects impossible.
func (l *look) means() string {
	var problems []string
	for i := range l.items {
		if err := l.items[i].desired.problem; err != nil {
			problems = append(problems, err.Error())
		}
	}
	var options v1alpha1.SyncPolicy
	if p := l.app.Spec.SyncPolicy; p != nil {
		options = v1alpha1.SyncPolicy{SyncOptions: p.SyncOptions, ManagedNamespaceMetadata: p.ManagedNamespaceMetadata}
	}
	return fingerprint(options, l.app.Spec.IgnoreDifferences, problems)
}

func fingerprint(parts ...any) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, p := range parts {
		_ = enc.Encode(p) // a hash does not fail to be written to
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// aimed notes what the operation works on, at its first look: it stays with it, whatever the source and the spec say later.
func (r *running) aimed(t *look) {
	if r.goal != "" {
		return
	}
	r.goal = t.goal()
	r.noteDown(renderingNote, r.goal+" "+t.means())
	if r.local() {
		return
	}
	r.sources, r.revisions = t.sources(r), t.rendering.revisions
	r.several = len(t.app.Spec.Sources) > 0
	if !r.op.InitiatedBy.Automated {
		return
	}
	if r.op.Sync.Revision, r.op.Sync.Revisions = "", nil; r.several {
		r.op.Sync.Revisions = r.revisions
	} else {
		r.op.Sync.Revision = first(r.revisions)
	}
}

// anew makes the next attempt take what the source says then.
func (r *running) anew() {
	r.goal, r.sources, r.revisions, r.rendered = "", nil, nil, nil
	r.noteDown(renderingNote, "")
	if r.op.InitiatedBy.Automated {
		r.op.Sync.Revision, r.op.Sync.Revisions = "", nil
	}
}

// fixed tells that the operation names what it syncs to: nothing newer takes its place.
func (r *running) fixed() bool {
	s := r.op.Sync
	return r.local() || !r.op.InitiatedBy.Automated &&
		(s.Revision != "" || len(s.Revisions) > 0 || s.Source != nil || len(s.Sources) > 0)
}

// whole tells that the operation is an attempt at the application as a whole.
func (r *running) whole() bool { return !r.selective && !r.op.Sync.DryRun && !r.local() }
