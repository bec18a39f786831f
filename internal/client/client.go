// Package client owns what a face asks of Lockstep: applications to read, to watch and to operate on, as interfaces of a
// few methods, and the kinds of errors they answer with. Its forms (direct, which needs a kubeconfig and no server) live
// below it.
//
// It imports the API's values and causes only: never the server, never a form of its own.
package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cause"
)

// Ref names an application.
type Ref struct {
	Namespace, Name string
}

// RefOf is the name of app.
func RefOf(app *v1alpha1.Application) Ref { return Ref{Namespace: app.Namespace, Name: app.Name} }

// ParseRef reads "name" or "namespace/name"; namespace is taken where the text has none.
func ParseRef(text, namespace string) (Ref, error) {
	ns, name, both := strings.Cut(text, "/")
	if !both {
		ns, name = namespace, text
	}
	if ns == "" || name == "" || strings.Contains(name, "/") {
		return Ref{}, fmt.Errorf("%q: %w: an application is named NAME or NAMESPACE/NAME", text, ErrInvalid)
	}
	return Ref{Namespace: ns, Name: name}, nil
}

// String is namespace/name.
func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// Query selects applications. The zero value selects all.
type Query struct {
	// Namespace the applications live in; empty means all.
	Namespace string
	// Name selects one application of Namespace; empty means all.
	Name string
	// Selector is a label selector; empty means all.
	Selector string
	// Projects are names; empty means all.
	Projects []string
}

// Reader reads applications.
type Reader interface {
	// Get returns one application, or an error that is ErrNotFound.
	Get(ctx context.Context, ref Ref) (*v1alpha1.Application, error)
	// List returns the applications of q, sorted by namespace and name.
	List(ctx context.Context, q Query) ([]v1alpha1.Application, error)
}

// Watcher follows applications.
type Watcher interface {
	// Watch calls visit for every application of q as it is, then once with Listed, then for every change, until ctx ends
	// or visit returns an error, which it returns; ErrStop ends it with nil. Lost connections are taken up again; an error
	// at the very start is returned. Events of one application are in order, and may be skipped for a newer one.
	Watch(ctx context.Context, q Query, visit func(Event) error) error
}

// Operator asks for operations.
type Operator interface {
	// Start asks for an operation and returns a mark by which to tell it from others. While another operation is asked
	// for or running it is refused with ErrInProgress.
	Start(ctx context.Context, ref Ref, op v1alpha1.Operation) (Mark, error)
	// Terminate asks the running operation to end; ErrNothingRuns when there is none.
	Terminate(ctx context.Context, ref Ref) error
	// Refresh asks for a new look at the source; hard also drops what was rendered before.
	Refresh(ctx context.Context, ref Ref, hard bool) error
}

// Explainer says why an application is not in step or not well.
type Explainer interface {
	// Explain looks at the application, at those of its objects that are not well, at what belongs to them and at their
	// recent events. Reads only.
	Explain(ctx context.Context, ref Ref) (Explanation, error)
}

// Explanation is why an application is as it is.
type Explanation struct {
	App *v1alpha1.Application
	// Causes are what keeps it from being in step and well, what blocks most first; none when all is well.
	Causes []cause.Cause
	// Unread is what could not be looked at, with the reason: the causes may lie there.
	Unread []string
}

// Applications is all of it.
type Applications interface {
	Reader
	Watcher
	Operator
	Explainer
}

// EventKind tells what an Event says.
type EventKind uint8

// The kinds of events.
const (
	// Present is an application as it is.
	Present EventKind = iota + 1
	// Deleted is an application that is gone; App is its last known form.
	Deleted
	// Listed says that everything that exists was shown once; App is nil.
	Listed
)

// Event is one step of a Watch.
type Event struct {
	Kind EventKind
	App  *v1alpha1.Application
}
