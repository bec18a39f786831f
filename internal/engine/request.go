package engine

import (
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// take takes up the operation that somebody has written into the custom resource. One that makes no sense ends at once, with
// the reason.
func (e *Engine) take(st *state, l *look) (outcome, bool) {
	st.running = newRunning(withoutNotes(*l.app.Operation), e.opts.Now())
	st.running.request = l.app.Operation
	fault := faultOf(l.app, l.app.Operation)
	if fault != "" || !st.running.whole() {
		st.running.keep(l.app)
	}
	if fault == "" {
		return outcome{}, true
	}
	return e.finish(st, l, v1alpha1.OperationError, fault+"; nothing was done"), false
}

// pending says that somebody's request waits for the end of the operation under way; empty when there is none.
func pending(app *v1alpha1.Application) string {
	if app.Operation == nil {
		return ""
	}
	who := app.Operation.InitiatedBy.Username
	if who == "" {
		who = "somebody unnamed"
	}
	return "another operation is in progress; the one asked for by " + who + " follows when it has ended"
}

// faultOf says in one sentence what is wrong with a request; empty when it can be carried out.
func faultOf(app *v1alpha1.Application, op *v1alpha1.Operation) string {
	s := op.Sync
	if s == nil {
		return "operation.sync: is missing; there is no other operation"
	}
	sources := s.Sources
	if s.Source != nil {
		if len(s.Sources) > 0 {
			return "operation.sync: source and sources exclude each other"
		}
		sources = []v1alpha1.ApplicationSource{*s.Source}
	}
	if len(sources) == 0 {
		sources = effective(app.Spec)
	}
	switch n := len(sources); {
	case s.Revision != "" && len(s.Revisions) > 0:
		return "operation.sync: revision and revisions exclude each other"
	case s.Revision != "" && n > 1:
		return fmt.Sprintf("operation.sync.revision: the application has %d sources; name one revision for each in operation.sync.revisions", n)
	case len(s.Revisions) > 0 && n > 0 && len(s.Revisions) != n:
		return fmt.Sprintf("operation.sync.revisions: there are %d for %d sources; name one for each, empty for the source's own", len(s.Revisions), n)
	}
	for i, r := range s.Resources {
		if r.Kind == "" || r.Name == "" {
			return fmt.Sprintf("operation.sync.resources[%d]: kind and name are needed", i)
		}
	}
	if fault := localFault(app, s); fault != "" {
		return fault
	}
	return retryFault(op.Retry)
}

func retryFault(r v1alpha1.RetryStrategy) string {
	if r.Limit < -1 {
		return fmt.Sprintf("operation.retry.limit: %d is less than -1, which is without end", r.Limit)
	}
	b := r.Backoff
	if b == nil {
		return ""
	}
	for _, d := range []struct{ field, text string }{{"duration", b.Duration}, {"maxDuration", b.MaxDuration}} {
		if d.text != "" && duration(d.text, 0) == 0 {
			return fmt.Sprintf("operation.retry.backoff.%s: %q is no duration such as 30s or 5m", d.field, d.text)
		}
	}
	if b.Factor != nil && *b.Factor < 1 {
		return fmt.Sprintf("operation.retry.backoff.factor: %d is less than 1", *b.Factor)
	}
	return ""
}

// unmatched says that none of the objects that a person chose is there to be synced; empty when one is.
func (l *look) unmatched(r *running) string {
	if !r.selective || r.op.InitiatedBy.Automated {
		return ""
	}
	for i := range l.items {
		if selects(r.op.Sync.Resources, l.items[i].desired.key) {
			return ""
		}
	}
	for i := range l.extras {
		if selects(r.op.Sync.Resources, l.extras[i].Key) {
			return ""
		}
	}
	names := make([]string, 0, len(r.op.Sync.Resources))
	for _, s := range r.op.Sync.Resources {
		kind := s.Kind
		if s.Group != "" {
			kind += "." + s.Group
		}
		names = append(names, kind+"/"+s.Name)
	}
	return "operation.sync.resources: " + strings.Join(names, ", ") + ": neither declared by the source nor left over from it; nothing was done"
}
