package client

import (
	"context"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// HandoverOptions say how an application changes hands.
type HandoverOptions struct {
	// DryRun writes nothing.
	DryRun bool
	// Quiet is how long Argo CD must not have written before Lockstep begins; 0 does not wait.
	Quiet time.Duration
	// GiveBack gives an application's objects to Argo CD, when Lockstep has let go; only Release needs it.
	GiveBack func(ctx context.Context, app *v1alpha1.Application) error
}

// Handover moves applications between Argo CD and Lockstep. Both ways can be gone again after a fault, and go on where they
// were cut off; of an application that is there already nothing is written.
type Handover interface {
	// Adopt tells Argo CD to leave an application, waits until it has, and hands it to Lockstep. It tells whether there was
	// anything to do. An application that would be taken back by its ApplicationSet is refused with ErrRefused.
	Adopt(ctx context.Context, ref Ref, o HandoverOptions) (bool, error)
	// Release tells Lockstep to let go of an application, waits until it has, gives the objects back and lets Argo CD begin.
	// It tells whether there was anything to do.
	Release(ctx context.Context, ref Ref, o HandoverOptions) (bool, error)
}
