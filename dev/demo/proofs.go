package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/dev/internal/outside"
	"github.com/lockstep-cd/lockstep/internal/client"
)

const (
	stageApp   = "guestbook-stage"
	stageFile  = "kustomize/overlays/stage/kustomization.yaml"
	plainApp   = "guestbook-plain"
	plainDir   = "plain"
	oldTag     = "2.52"
	newTag     = "2.53"
	webName    = "web"
	storeName  = "store"
	handEdited = 5
	// hold is how long the cluster is looked at for something that must not happen.
	hold = 3 * time.Second
	// restoreWithin is how long it may take to come back from a push that was refused.
	restoreWithin = 20 * time.Second
)

// proofs change Git or the cluster and show what comes of it.
func (st *stage) proofs() []act {
	return []act{
		{"Commit a new image tag and wait for the rollout", time.Minute, false, st.newImage},
		{"Delete one Deployment by hand, edit another, and wait until both are put back", 30 * time.Second, false, st.handChanges},
		{"Push a broken manifest: the reason is told, everything stays", 30 * time.Second, false, st.broken},
		{"Push an empty folder: nothing is deleted", 30 * time.Second, false, st.emptied},
	}
}

func (st *stage) newImage(ctx context.Context) error {
	commit, pushed, err := st.push(ctx, newImageFiles(st.files), "stage: agnhost "+newTag)
	if err != nil {
		return err
	}
	asked := false
	err = outside.Until(ctx, func(ctx context.Context) (bool, error) {
		d, err := st.deployment(ctx, stageApp, webName)
		if err != nil || !strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, ":"+newTag) {
			return false, nil
		}
		if !asked {
			st.show.say("Deployment %s/%s asks for %s after %s", d.Namespace, d.Name, newTag, span(time.Since(pushed)))
			asked = true
		}
		return rolledOut(d), nil
	})
	if err != nil {
		return fmt.Errorf("no rollout in time: %s", client.Cause(st.app(stageApp)))
	}
	st.show.say("the rollout is done after %s", span(time.Since(pushed)))
	err = st.board.Wait(ctx, func([]*v1alpha1.Application) bool {
		app := st.app(stageApp)
		return outside.Fine(app) && app.Status.Sync.Revision == commit
	})
	if err != nil {
		return st.notFine([]string{stageApp})
	}
	st.show.say("%s is Synced with %s and Healthy after %s", stageApp, short(commit), span(time.Since(pushed)))
	return nil
}

// newImageFiles is a change of the front end's image.
func newImageFiles(files map[string]string) map[string]string {
	return map[string]string{stageFile: strings.Replace(files[stageFile], oldTag, newTag, 1)}
}

func rolledOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
		d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
}

func (st *stage) handChanges(ctx context.Context) error {
	store, err := st.deployment(ctx, plainApp, storeName)
	if err != nil {
		return err
	}
	deployments := st.kube.Resource(outside.Deployments()).Namespace(plainApp)
	st.show.say("delete Deployment %s/%s", plainApp, storeName)
	if err := deployments.Delete(ctx, storeName, metav1.DeleteOptions{}); err != nil {
		return err
	}
	deleted := time.Now()
	st.show.say("set Deployment %s/%s to %d replicas", plainApp, webName, handEdited)
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, handEdited)
	if _, err := deployments.Patch(ctx, webName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "demo-hand"}); err != nil {
		return err
	}
	edited := time.Now()
	var storeBack, webBack time.Duration
	err = outside.Until(ctx, func(ctx context.Context) (bool, error) {
		if d, err := st.deployment(ctx, plainApp, storeName); storeBack == 0 && err == nil && d.UID != store.UID {
			storeBack = time.Since(deleted)
			st.show.say("Deployment %s is there again after %s", storeName, span(storeBack))
		}
		if d, err := st.deployment(ctx, plainApp, webName); webBack == 0 && err == nil && *d.Spec.Replicas != handEdited {
			webBack = time.Since(edited)
			st.show.say("Deployment %s has its %d replicas again after %s", webName, *d.Spec.Replicas, span(webBack))
		}
		return storeBack > 0 && webBack > 0, nil
	})
	if err != nil {
		return fmt.Errorf("not put back in time: %s", client.Cause(st.app(plainApp)))
	}
	// The applications' own word may be from before the change, so the Deployments come first.
	err = outside.Until(ctx, func(ctx context.Context) (bool, error) {
		store, err1 := st.deployment(ctx, plainApp, storeName)
		web, err2 := st.deployment(ctx, plainApp, webName)
		return err1 == nil && err2 == nil && rolledOut(store) && rolledOut(web), nil
	})
	if err != nil {
		return fmt.Errorf("put back, but not all pods are ready in time")
	}
	if err := st.allFine(ctx); err != nil {
		return err
	}
	st.show.say("all pods are ready again and everything is in step after %s", span(time.Since(deleted)))
	return nil
}

func (st *stage) broken(ctx context.Context) error {
	return st.refused(ctx, brokenFiles(st.files), "web: a slip of the pen")
}

// brokenFiles is a change that makes a manifest unreadable.
func brokenFiles(files map[string]string) map[string]string {
	file := path.Join(plainDir, "web.yaml")
	return map[string]string{file: strings.Replace(files[file], "  replicas: 2", "  replicas: [2", 1)}
}

func (st *stage) emptied(ctx context.Context) error {
	return st.refused(ctx, emptiedFiles(st.files), "plain: remove everything")
}

// emptiedFiles is a change that leaves a folder without manifests. Git keeps no empty folders, so one file stays.
func emptiedFiles(files map[string]string) map[string]string {
	change := map[string]string{path.Join(plainDir, ".gitkeep"): ""}
	for name := range files {
		if path.Dir(name) == plainDir {
			change[name] = deleted
		}
	}
	return change
}

// refused pushes what Lockstep must not act on, shows what it says, checks that nothing in the cluster moves, and takes
// the push back.
func (st *stage) refused(ctx context.Context, files map[string]string, message string) error {
	if err := st.allFine(ctx); err != nil {
		return err // else an older complaint would be taken for the new one
	}
	before, err := st.census(ctx)
	if err != nil {
		return err
	}
	commit, pushed, err := st.push(ctx, files, message)
	if err != nil {
		return err
	}
	defer st.restore(ctx, files)
	err = st.board.Wait(ctx, func([]*v1alpha1.Application) bool { return outside.Problem(st.app(plainApp)) != "" })
	if err != nil {
		return fmt.Errorf("%s says nothing about commit %s in time", plainApp, short(commit))
	}
	st.show.say("%s says after %s:\n  %s", plainApp, span(time.Since(pushed)), outside.Problem(st.app(plainApp)))
	if err := st.nothingMoves(ctx, before); err != nil {
		return err
	}
	others := 0
	for _, name := range st.names {
		if name == plainApp || name == rootApp {
			continue
		}
		if !outside.Fine(st.app(name)) {
			return st.notFine([]string{name})
		}
		others++
	}
	st.show.say("%d objects are as they were, looked at for %s; the %d other guestbooks are in step and healthy", len(before), hold, others)
	return nil
}

// restore pushes the original files and waits until everything is in step again. It reports on its own: the act has
// already shown its point, or not. It has time of its own, so that an act that missed its time does not spoil the next.
func (st *stage) restore(ctx context.Context, files map[string]string) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return // everything is about to end
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreWithin)
	defer cancel()
	original := map[string]string{}
	for name := range files {
		data, known := st.files[name]
		if !known {
			data = deleted
		}
		original[name] = data
	}
	commit, pushed, err := st.push(ctx, original, "take the last commit back")
	if err == nil && st.board.Wait(ctx, func([]*v1alpha1.Application) bool { return st.app(plainApp).Status.Sync.Revision == commit }) == nil {
		err = st.allFine(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		st.show.say("not restored: %v", err)
		return
	}
	st.show.say("everything is in step and healthy again after %s", span(time.Since(pushed)))
}

func (st *stage) deployment(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	o, err := st.kube.Resource(outside.Deployments()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	d := &appsv1.Deployment{}
	return d, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d)
}
