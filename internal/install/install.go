// Package install owns the objects a cluster needs before Lockstep can run in it: the definitions of our kinds, the
// namespace and the default project. It only ever adds: a definition that is there is widened, never narrowed.
//
// It imports api and Kubernetes' clients, and nothing else of ours. The comparison of definitions is pure.
package install

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
)

// Manager is the field manager of everything that is written.
const Manager = "lockstep"

// Options say where and how Lockstep is installed.
type Options struct {
	// Namespace of Lockstep and of the default project; empty means "lockstep".
	Namespace string
	// Timeout for the server to take up the definitions; 0 means 30 seconds.
	Timeout time.Duration
}

// withDefaults fills in what is not set.
func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = "lockstep"
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	return o
}

// Action is what was done with one object.
type Action string

// The actions.
const (
	Created   Action = "created"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
)

// Change is what was done with one object.
type Change struct {
	// Object is Kind/name or Kind/namespace/name.
	Object string
	Action Action
	// Difference is what a definition in the cluster lacked or had beyond ours, before the change.
	Difference Difference
}

// Report lists the objects in the order they were looked at.
type Report struct {
	Changes []Change
}

// All writes the definitions, then the namespace and the default project. On an error the report tells how far it came.
func All(ctx context.Context, client dynamic.Interface, options Options) (Report, error) {
	report, err := CRDs(ctx, client, options)
	if err != nil {
		return report, err
	}
	for _, step := range []func(context.Context, dynamic.Interface, Options) (Change, error){Namespace, DefaultProject} {
		change, err := step(ctx, client, options)
		if err != nil {
			return report, err
		}
		report.Changes = append(report.Changes, change)
	}
	return report, nil
}
