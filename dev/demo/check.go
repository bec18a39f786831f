package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/dev/internal/outside"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

const deleted = gitserver.Deleted

// push commits and announces, and tells what was done.
func (st *stage) push(ctx context.Context, files map[string]string, message string) (commit string, at time.Time, err error) {
	commit, err = st.forge.Push(ctx, files, message)
	if err == nil {
		st.show.say("git push: %s %q, announced by webhook", short(commit), message)
	}
	return commit, time.Now(), err
}

// app is the newest form of an application; an empty one when it is gone.
func (st *stage) app(name string) *v1alpha1.Application {
	if app := st.board.Get(name); app != nil {
		return app
	}
	return &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// allFine waits until everything is in step and healthy.
func (st *stage) allFine(ctx context.Context) error {
	if st.board.Wait(ctx, func(list []*v1alpha1.Application) bool { return allFine(list, st.names) }) != nil {
		return st.notFine(st.names)
	}
	return nil
}

// census is every object that the guestbooks consist of, with what changes when somebody writes its spec.
func (st *stage) census(ctx context.Context) (map[string]string, error) {
	seen := map[string]string{}
	for _, gvr := range []schema.GroupVersionResource{
		outside.Deployments(),
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	} {
		for _, ns := range st.names[1:] {
			list, err := st.kube.Resource(gvr).Namespace(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, o := range list.Items {
				if o.GetName() == "kube-root-ca.crt" || o.GetKind() == "ServiceAccount" && o.GetName() == "default" {
					continue // the cluster's own
				}
				seen[fmt.Sprintf("%s %s/%s", o.GetKind(), ns, o.GetName())] = fmt.Sprintf("%s generation %d", o.GetUID(), o.GetGeneration())
			}
		}
	}
	return seen, nil
}

// nothingMoves compares the cluster with an earlier census for a while.
func (st *stage) nothingMoves(ctx context.Context, before map[string]string) error {
	held, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	for {
		now, err := st.census(ctx)
		if err != nil {
			return err
		}
		for object, state := range before {
			if now[object] != state {
				return fmt.Errorf("%s: was %s, is %s", object, state, or(now[object], "gone"))
			}
		}
		select {
		case <-held.Done():
			return ctx.Err()
		case <-time.After(drawEvery):
		}
	}
}
