package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

// maxBackoff bounds the wait between two attempts to take up a lost watch.
const maxBackoff = 10 * time.Second

// Watch implements client.Watcher: list, then watch from there; when that ends, watch on from the last version seen, or
// list again when the API server has forgotten it.
func (c *Client) Watch(ctx context.Context, q client.Query, visit func(client.Event) error) error {
	w := &watching{c: c, q: q, visit: visit, known: map[client.Ref]*v1alpha1.Application{}}
	err := w.run(ctx)
	if errors.Is(err, client.ErrStop) {
		return nil
	}
	return err
}

// watching is the state of one Watch.
type watching struct {
	c     *Client
	q     client.Query
	visit func(client.Event) error
	// known is what the visitor believes to exist.
	known map[client.Ref]*v1alpha1.Application
	// from is the resource version to watch from; empty means that a list comes first.
	from   string
	listed bool
}

// visitorError is an error of the visitor, which ends the watch whatever it is.
type visitorError struct{ error }

func (e visitorError) Unwrap() error { return e.error }

func (w *watching) run(ctx context.Context) error {
	wait := w.c.backoff
	for {
		seen, err := w.once(ctx)
		var own visitorError
		switch {
		case errors.As(err, &own):
			return own.error
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !w.listed:
			return err // nothing was ever shown: the caller should know why
		case err != nil && errors.Is(err, client.ErrForbidden), errors.Is(err, client.ErrUnauthenticated):
			return err
		}
		if seen {
			wait = w.c.backoff
		}
		if err == nil {
			continue // the API server ends each watch after some minutes
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// once lists if it must and watches until that ends. It tells whether anything was seen.
func (w *watching) once(ctx context.Context) (seen bool, err error) {
	if w.from == "" {
		if err := w.list(ctx); err != nil {
			return false, err
		}
		seen = true
	}
	opts := listOptions(w.q)
	opts.ResourceVersion, opts.Watch, opts.AllowWatchBookmarks = w.from, true, true
	stream, err := w.c.rest.Get().Namespace(w.q.Namespace).Resource(resource).VersionedParams(&opts, w.c.codec).Watch(ctx)
	if err != nil {
		return seen, w.lost(err)
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Type == watch.Error {
			return seen, w.lost(apierrors.FromObject(event.Object))
		}
		seen = true
		if err := w.handle(event); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// lost decides from where to go on after err.
func (w *watching) lost(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		w.from = ""
	}
	return w.c.explain(err, "applications")
}

func (w *watching) list(ctx context.Context) error {
	apps, version, err := w.c.list(ctx, w.q)
	if err != nil {
		return err
	}
	there := make(map[client.Ref]bool, len(apps))
	for i := range apps {
		there[client.RefOf(&apps[i])] = true
	}
	for ref, app := range w.known {
		if there[ref] {
			continue
		}
		if err := w.gone(app); err != nil {
			return err
		}
	}
	for i := range apps {
		if err := w.show(&apps[i]); err != nil {
			return err
		}
	}
	w.from = version
	if w.listed {
		return nil
	}
	w.listed = true
	return w.tell(client.Event{Kind: client.Listed})
}

func (w *watching) handle(event watch.Event) error {
	app, ok := event.Object.(*v1alpha1.Application)
	if !ok {
		return fmt.Errorf("applications: unexpected %T in the watch", event.Object)
	}
	w.from = app.ResourceVersion
	switch event.Type {
	case watch.Added, watch.Modified:
		if wanted(w.q, app) {
			return w.show(clean(app))
		}
		if before, ok := w.known[client.RefOf(app)]; ok {
			return w.gone(before) // it moved to another project
		}
	case watch.Deleted:
		if _, ok := w.known[client.RefOf(app)]; ok {
			return w.gone(clean(app))
		}
	}
	return nil
}

func (w *watching) show(app *v1alpha1.Application) error {
	ref := client.RefOf(app)
	if before, ok := w.known[ref]; ok && before.ResourceVersion == app.ResourceVersion {
		return nil
	}
	w.known[ref] = app
	return w.tell(client.Event{Kind: client.Present, App: app})
}

func (w *watching) gone(app *v1alpha1.Application) error {
	delete(w.known, client.RefOf(app))
	return w.tell(client.Event{Kind: client.Deleted, App: app})
}

func (w *watching) tell(e client.Event) error {
	if err := w.visit(e); err != nil {
		return visitorError{err}
	}
	return nil
}
