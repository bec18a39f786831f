package direct

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/handover"
)

var _ client.Handover = (*Client)(nil)

// lookEvery is how often an application is looked at while somebody else lets go of it.
const lookEvery = 500 * time.Millisecond

// read reads an application with what its managedFields show.
func (c *Client) read(ctx context.Context, ref client.Ref) (*v1alpha1.Application, handover.Claim, error) {
	app := &v1alpha1.Application{}
	err := c.rest.Get().Namespace(ref.Namespace).Resource(resource).Name(ref.Name).Do(ctx).Into(app)
	if err != nil {
		return nil, handover.Claim{}, c.explain(err, "application "+ref.String())
	}
	claim := handover.ClaimOf(app.ManagedFields)
	return clean(app), claim, nil
}

// Adopt implements client.Handover.
func (c *Client) Adopt(ctx context.Context, ref client.Ref, o client.HandoverOptions) (bool, error) {
	app, claim, err := c.read(ctx, ref)
	if err != nil {
		return false, err
	}
	if handover.Adopted(app) && !claim.Since(app) {
		return false, nil
	}
	if app.DeletionTimestamp != nil {
		return false, fmt.Errorf("application %s: %w: it is being deleted", ref, client.ErrRefused)
	}
	if err := c.keepsMarks(ctx, app); err != nil || o.DryRun {
		return true, err
	}
	if err := c.idle(ctx, ref); err != nil {
		return true, err
	}
	if err := c.mark(ctx, ref, handover.Ask); err != nil {
		return true, err
	}
	if err := c.quiet(ctx, ref, o.Quiet); err != nil {
		return true, err
	}
	return true, c.mark(ctx, ref, handover.Adopt)
}

// quiet waits until Argo CD has not written for a while: what it had begun before it saw the mark ends first.
func (c *Client) quiet(ctx context.Context, ref client.Ref, span time.Duration) error {
	var last time.Time
	began, first := time.Now(), true
	return c.await(ctx, ref, "Argo CD writes it no more", func(_ *v1alpha1.Application, claim handover.Claim) bool {
		if first || !claim.Theirs.Equal(last) {
			first, last, began = false, claim.Theirs, time.Now()
		}
		return time.Since(began) >= span
	})
}

// Release implements client.Handover.
func (c *Client) Release(ctx context.Context, ref client.Ref, o client.HandoverOptions) (bool, error) {
	app, _, err := c.read(ctx, ref)
	if err != nil {
		return false, err
	}
	if handover.Released(app) {
		return false, nil
	}
	if o.DryRun {
		return true, nil
	}
	if !letGo(app) {
		if err := c.idle(ctx, ref); err != nil {
			return true, err
		}
		if err := c.mark(ctx, ref, handover.Leave); err != nil {
			return true, err
		}
		if err := c.awaitLetGo(ctx, ref); err != nil {
			return true, err
		}
	}
	if app, _, err = c.read(ctx, ref); err != nil {
		return true, err
	}
	if err := o.GiveBack(ctx, app); err != nil {
		return true, fmt.Errorf("application %s: give back: %w; neither Argo CD nor Lockstep keeps it until `lockstep release` has gone through", ref, err)
	}
	return true, c.mark(ctx, ref, handover.Release)
}

// awaitLetGo waits until Lockstep says that nothing of its own is under way, or until no Lockstep runs that could say so.
func (c *Client) awaitLetGo(ctx context.Context, ref client.Ref) error {
	var watch holder
	for {
		app, _, err := c.read(ctx, ref)
		if err != nil {
			return err
		}
		if letGo(app) {
			return nil
		}
		alive, err := c.working(ctx, ref.Namespace, &watch)
		if err != nil {
			return err
		}
		if !alive {
			return c.mark(ctx, ref, handover.Alone)
		}
		if err := pause(ctx, ref, "Lockstep has let go"); err != nil {
			return err
		}
	}
}

// idle waits until no sync is under way: who has begun it ends it, else its hooks would be left behind.
func (c *Client) idle(ctx context.Context, ref client.Ref) error {
	return c.await(ctx, ref, "the sync that is under way has ended", func(app *v1alpha1.Application, _ handover.Claim) bool {
		_, busy := client.Busy(app)
		return !busy
	})
}

func letGo(app *v1alpha1.Application) bool {
	return app.Labels[handover.ManagerLabel] == handover.ArgoCD && app.Annotations[handover.ReleasingAnnotation] == handover.LetGo
}

// await waits until an application is as wanted; what says so in words.
func (c *Client) await(ctx context.Context, ref client.Ref, what string, so func(*v1alpha1.Application, handover.Claim) bool) error {
	for {
		app, claim, err := c.read(ctx, ref)
		if err != nil {
			return err
		}
		if so(app, claim) {
			return nil
		}
		if err := pause(ctx, ref, what); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, ref client.Ref, what string) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("application %s: waited in vain until %s: %w", ref, what, context.Cause(ctx))
	case <-time.After(lookEvery):
		return nil
	}
}

// mark sets the marks of a step on the version of the application that they were worked out from.
func (c *Client) mark(ctx context.Context, ref client.Ref, step func(*v1alpha1.Application, handover.Claim) map[string]any) error {
	for try := 1; ; try++ {
		app, claim, err := c.read(ctx, ref)
		if err != nil {
			return err
		}
		metadata := step(app, claim)
		metadata["resourceVersion"] = app.ResourceVersion
		err = c.patch(ctx, ref, map[string]any{"metadata": metadata})
		if apierrors.IsConflict(err) && try < tries {
			continue
		}
		return c.explain(err, "application "+ref.String())
	}
}
