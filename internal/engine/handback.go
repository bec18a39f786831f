package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// Handback gives what Lockstep owns of an application's objects to Argo CD, once and without a loop (DESIGN.md §2.5, rule 9).
type Handback struct {
	cluster *cluster.Cluster
	writer  *apply.Writer
}

// possession is an object that Lockstep owns something of.
type possession struct {
	key      manifest.Key
	resource cluster.Resource
	live     *unstructured.Unstructured
}

// NewHandback makes one for the cluster that config reaches. The caller's rights there are what it works with.
func NewHandback(config *rest.Config) (*Handback, error) {
	c, err := cluster.New(cluster.Options{REST: config, Read: readByDefault, OnChange: func(cluster.Change) {}})
	if err != nil {
		return nil, err
	}
	w, err := apply.New(config)
	return &Handback{cluster: c, writer: w}, err
}

// Owned are the objects of the application's status of which Lockstep owns something.
func (h *Handback) Owned(ctx context.Context, app *v1alpha1.Application) ([]manifest.Key, error) {
	return h.each(ctx, app, func(context.Context, possession) error { return nil })
}

// Give gives them back and answers which those were. What Argo CD applies on the client's side gets the annotation by which
// it finds fields that left the source. It can be done again after a fault.
func (h *Handback) Give(ctx context.Context, app *v1alpha1.Application) ([]manifest.Key, error) {
	return h.each(ctx, app, func(ctx context.Context, o possession) error {
		_, err := h.writer.GiveBack(ctx, target(o.resource), o.key, o.live, !serverSide(app, o))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// each does something with every object of the application that we own something of.
func (h *Handback) each(ctx context.Context, app *v1alpha1.Application, do func(context.Context, possession) error) ([]manifest.Key, error) {
	resources := app.Status.Resources
	owned := make([]manifest.Key, len(resources))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(previewAtOnce)
	for i, r := range resources {
		group.Go(func() error {
			o, err := h.look(ctx, app, r)
			if err != nil || o == nil {
				return err
			}
			owned[i] = o.key
			return do(ctx, *o)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("application %s: %w", app.Name, err)
	}
	return slices.DeleteFunc(owned, func(k manifest.Key) bool { return k == manifest.Key{} }), nil
}

// look reads one object; nil when it is not there, not the application's, or not ours in any field.
func (h *Handback) look(ctx context.Context, app *v1alpha1.Application, r v1alpha1.ResourceStatus) (*possession, error) {
	o := &possession{key: manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}}
	var err error
	o.resource, err = h.cluster.Kind(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
	if errors.Is(err, cluster.ErrNoKind) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.key, err)
	}
	o.live, err = h.cluster.Get(ctx, o.resource, o.key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", o.key, err)
	}
	if owner := ownerOf(o.live.GetAnnotations()[TrackingAnnotation], o.key); owner != "" && owner != app.Name {
		return nil, nil
	}
	if compare.EntryHash(o.live.GetManagedFields()) == "" {
		return nil, nil
	}
	return o, nil
}

// serverSide tells whether Argo CD applies the object on the server's side: its own word counts before the application's.
func serverSide(app *v1alpha1.Application, o possession) bool {
	const yes, no = "ServerSideApply=true", "ServerSideApply=false"
	own := plan.ParseOptions(o.live.GetAnnotations()[plan.SyncOptionsAnnotation])
	if own.Has(yes) || own.Has(no) {
		return own.Has(yes)
	}
	return app.Spec.SyncPolicy != nil && plan.SetOf(app.Spec.SyncPolicy.SyncOptions).Has(yes)
}
