package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/repository"
)

const (
	// askCluster bounds one look whether the cluster answers.
	askCluster = 5 * time.Second
	// retryCluster is how often a cluster that does not answer is asked again.
	retryCluster = 2 * time.Second
)

// ErrNotInstalled says that the cluster does not know our kinds.
var ErrNotInstalled = errors.New("not installed")

// errAway says that the cluster gave no answer, which may mend itself.
var errAway = errors.New("away")

// kindError is an error with a kind that its text does not repeat.
type kindError struct {
	kind error
	text string
}

func (e kindError) Error() string { return e.text }
func (e kindError) Unwrap() error { return e.kind }

// work waits until the cluster answers and the lease is held, and then runs the engine until ctx ends or the lease is lost.
func (a *App) work(ctx context.Context) error {
	if err := a.awaitCluster(ctx); err != nil {
		return ended(ctx, err)
	}
	return a.lease.Hold(ctx, a.runEngine)
}

// runEngine is what the holder of the lease does.
func (a *App) runEngine(ctx context.Context) error {
	selector, err := a.opts.selector()
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{
		REST: a.opts.REST, Namespace: a.opts.Namespace, Applications: selector, Records: a.data.records, Key: a.data.key, Workers: a.opts.Work.Workers,
		Repositories: repository.NewSet(), Render: a.workers.Render,
		Sources: &engine.Sources{Git: a.data.git, Charts: a.data.charts, NoSubmodules: a.opts.Sources.NoSubmodules},
		Version: renderingVersion(a.opts.Version), Cache: a.openCache(ctx),
		PollInterval: a.opts.Sources.PollInterval, Metrics: a.counted, Log: a.opts.Log.With("component", "engine"),
	})
	if err != nil {
		return err
	}
	defer e.Stop()
	if err := e.Start(ctx); err != nil {
		return ended(ctx, err)
	}
	// Registered late and taken out before the engine stops: its lists exist only in between.
	collector := e.Collector()
	if err := a.metrics.Register(collector); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	defer a.metrics.Unregister(collector)
	a.engine.Store(e)
	defer a.engine.Store(nil)
	a.log.Info("working", "workers", a.opts.Work.Workers, "poll_interval", a.opts.Sources.PollInterval)
	<-ctx.Done()
	return nil
}

// ended drops errors that only say that ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// awaitCluster returns when the cluster knows our kinds, or with the reason why waiting is of no use.
func (a *App) awaitCluster(ctx context.Context) error {
	tick := time.NewTicker(retryCluster)
	defer tick.Stop()
	said := false
	for {
		err := a.installed(ctx)
		if !errors.Is(err, errAway) {
			return err
		}
		if !said && ctx.Err() == nil {
			said = true
			a.log.Warn("waiting for the cluster", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// installed asks whether the cluster knows our kinds and lets us read them: nil, ErrNotInstalled, errAway when there was no
// answer, or the refusal.
func (a *App) installed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askCluster)
	defer cancel()
	for _, r := range []schema.GroupVersionResource{v1alpha1.Applications(), v1alpha1.AppProjects()} {
		_, err := a.client.Resource(r).Namespace(a.opts.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case err == nil:
		case apierrors.IsNotFound(err):
			return kindError{ErrNotInstalled, fmt.Sprintf("cluster %s: does not know the kind %s; run `lockstep install` first", a.opts.REST.Host, r.GroupResource())}
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return fmt.Errorf("cluster %s: does not let us read %s: %w", a.opts.REST.Host, r.GroupResource(), err)
		default:
			return kindError{errAway, fmt.Sprintf("cluster %s: does not answer: %v", a.opts.REST.Host, err)}
		}
	}
	return nil
}
