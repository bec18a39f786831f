package api

import (
	"context"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// State is what is known of applications and projects. Everything that it answers is shared: nobody changes it.
type State interface {
	// Applications are all, in no order.
	Applications() []*v1alpha1.Application
	// Application is the one of that name; nil when there is none.
	Application(name string) *v1alpha1.Application
	// Projects are all, in no order.
	Projects() []*v1alpha1.AppProject
	// Project is the one of that name; nil when there is none.
	Project(name string) *v1alpha1.AppProject
}

// Changes tells of applications that change.
type Changes interface {
	Follow() *engine.Feed
}

// Asker asks the loop for something.
type Asker interface {
	// Refresh asks for a new look at the sources and waits until it was taken, as long as ctx lasts; hard renders anew.
	Refresh(ctx context.Context, name string, hard bool) (*v1alpha1.Application, error)
}

// Live is what a running engine answers with, part by part.
type Live struct {
	// Namespace that applications and projects live in.
	Namespace string
	State     State
	Changes   Changes
	Asker     Asker
}

// Of is what e answers with; nothing for nil.
func Of(e *engine.Engine) Live {
	if e == nil {
		return Live{}
	}
	return Live{Namespace: e.Namespace(), State: e, Changes: e, Asker: e}
}
