package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/dev/internal/outside"
	"github.com/lockstep-cd/lockstep/internal/client"
)

// noDifference is said of a second sync that had nothing to do.
const noDifference = "no difference"

// result is what came of one subject.
type result struct {
	*subject
	objects int
	sync    string
	health  string
	// second tells how the second sync went: noDifference, or what was different.
	second   string
	warnings []string
	took     time.Duration
	err      error
}

// measure deploys the subjects one after the other, so that the times are their own.
func (l *laboratory) measure(ctx context.Context, subjects []*subject) []result {
	var results []result
	for _, s := range subjects {
		if s.ServeOnly && s.err == nil || ctx.Err() != nil {
			continue
		}
		r := result{subject: s, err: s.err}
		if r.err == nil {
			r.err = l.deploy(ctx, &r)
			if !l.options.keep {
				l.remove(ctx, &r)
			}
		}
		outcome := "in step"
		if r.err != nil {
			outcome = r.err.Error()
		}
		if outcome == "in step" && r.second != noDifference {
			outcome = r.second
		}
		say("%-28s %s", s.Name, outcome)
		results = append(results, r)
	}
	return results
}

// deploy creates the application and syncs it twice. An error means that there was nothing to sync, or that the first
// sync did not bring it into step.
func (l *laboratory) deploy(ctx context.Context, r *result) error {
	limited, cancel := context.WithTimeout(ctx, l.options.limit)
	defer cancel()
	app, err := r.application()
	if err != nil {
		return err
	}
	started := time.Now()
	if err := l.kube.Create(limited, v1alpha1.Applications(), app); err != nil {
		return err
	}
	if err := l.compared(limited, r.Name); err != nil {
		return err
	}
	syncErr := l.sync(limited, r.Name)
	if syncErr == nil {
		syncErr = l.wait(limited, r.Name, outside.Fine)
	}
	r.took = time.Since(started)
	r.take(l.board.Get(r.Name))
	if syncErr != nil {
		return syncErr
	}
	r.second = l.again(ctx, r.Name)
	r.take(l.board.Get(r.Name))
	return nil
}

// remove deletes the application with its objects: others may bring objects of the same name.
func (l *laboratory) remove(ctx context.Context, r *result) {
	ctx, cancel := context.WithTimeout(ctx, l.options.limit)
	defer cancel()
	app := l.kube.Resource(v1alpha1.Applications()).Namespace(namespace)
	if err := app.Delete(ctx, r.Name, metav1.DeleteOptions{}); err != nil {
		r.warnings = append(r.warnings, "deletion: "+err.Error())
		return
	}
	if l.board.Wait(ctx, func([]*v1alpha1.Application) bool { return l.board.Get(r.Name) == nil }) != nil {
		r.warnings = append(r.warnings, fmt.Sprintf("deletion: not done after %s: %s", l.options.limit, client.Cause(l.board.Get(r.Name))))
	}
}

func (r *result) take(app *v1alpha1.Application) {
	if app == nil {
		return
	}
	r.objects, r.sync, r.health = len(app.Status.Resources), string(app.Status.Sync.Status), string(app.Status.Health.Status)
	r.warnings = nil
	for _, c := range app.Status.Conditions {
		if strings.HasSuffix(string(c.Type), "Warning") {
			r.warnings = append(r.warnings, c.Message)
		}
	}
}

// compared waits until the source was rendered and compared, or until it is known that it can not be.
func (l *laboratory) compared(ctx context.Context, name string) error {
	err := l.wait(ctx, name, func(app *v1alpha1.Application) bool {
		return outside.Problem(app) != "" || app.Status.Sync.Status == v1alpha1.SyncSynced || app.Status.Sync.Status == v1alpha1.SyncOutOfSync
	})
	if p := outside.Problem(l.board.Get(name)); p != "" {
		return errors.New(p)
	}
	return err
}

// wait returns when found is true for the application; the error says how it is instead.
func (l *laboratory) wait(ctx context.Context, name string, found func(*v1alpha1.Application) bool) error {
	err := l.board.Wait(ctx, func([]*v1alpha1.Application) bool {
		app := l.board.Get(name)
		return app != nil && found(app)
	})
	if err == nil {
		return nil
	}
	app := l.board.Get(name)
	if app == nil {
		return errors.New("the application is gone")
	}
	return fmt.Errorf("%s and %s after %s: %s", app.Status.Sync.Status, app.Status.Health.Status, l.options.limit, client.Cause(app))
}

// sync asks for a sync and waits for its end.
func (l *laboratory) sync(ctx context.Context, name string) error {
	mark, err := l.kube.Apps.Start(ctx, client.Ref{Namespace: namespace, Name: name}, v1alpha1.Operation{
		Sync: &v1alpha1.SyncOperation{}, InitiatedBy: v1alpha1.OperationInitiator{Username: "tryout"},
	})
	if err != nil {
		return err
	}
	if err := l.wait(ctx, name, func(app *v1alpha1.Application) bool { return mark.Stage(app) >= client.Ended }); err != nil {
		return err
	}
	if op := l.board.Get(name).Status.OperationState; op != nil && op.Phase != v1alpha1.OperationSucceeded {
		return fmt.Errorf("sync %s: %s", op.Phase, op.Message)
	}
	return nil
}

// again looks at everything anew and syncs a second time; nothing may change by it.
func (l *laboratory) again(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, l.options.limit)
	defer cancel()
	before, err := l.fingerprint(ctx, name)
	if err != nil {
		return err.Error()
	}
	app, err := l.refreshed(ctx, client.Ref{Namespace: namespace, Name: name})
	if err != nil {
		return "refresh: " + err.Error()
	}
	if !client.InStep(app) {
		return "differs: " + client.Cause(app)
	}
	if err := l.sync(ctx, name); err != nil {
		return err.Error()
	}
	after, err := l.fingerprint(ctx, name)
	if err != nil {
		return err.Error()
	}
	for object, was := range before {
		if after[object] != was {
			return "changed " + object
		}
	}
	return noDifference
}

// cascade makes an application's objects go with it.
const cascade = "resources-finalizer.argocd.argoproj.io"

// refreshAnnotation asks for a look and goes when it was taken.
const refreshAnnotation = "argocd.argoproj.io/refresh"

// refreshed asks for a look without caches and returns the application after it. It reads the application itself: what the
// board has may be from before the question.
func (l *laboratory) refreshed(ctx context.Context, ref client.Ref) (app *v1alpha1.Application, err error) {
	if err := l.kube.Apps.Refresh(ctx, ref, true); err != nil {
		return nil, err
	}
	err = outside.Until(ctx, func(ctx context.Context) (bool, error) {
		app, err = l.kube.Apps.Get(ctx, ref)
		return err == nil && app.Annotations[refreshAnnotation] == "", err
	})
	return app, err
}

// repoURL is the chart's repository as applications and Secrets name it: a registry without its scheme.
func (s *subject) repoURL() string { return strings.TrimPrefix(s.Repository, "oci://") }

// application is the Application for a subject.
func (s *subject) application() (*unstructured.Unstructured, error) {
	source := s.Source
	source.RepoURL, source.Path, source.TargetRevision = s.from.url.String(), s.Path, s.from.revision(s.commit)
	if s.chart != nil {
		source.RepoURL, source.Path, source.TargetRevision = s.repoURL(), "", s.version
		source.Chart = s.chart.chart.Name()
	}
	app := v1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.ApplicationKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.Name, Finalizers: []string{cascade}},
		Spec: v1alpha1.ApplicationSpec{
			Project: "default", Source: &source,
			Destination: v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: "try-" + s.Name},
			SyncPolicy:  &v1alpha1.SyncPolicy{SyncOptions: v1alpha1.SyncOptions{"CreateNamespace=true"}},
		},
	}
	data, err := json.Marshal(app)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &o.Object); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return o, nil
}
