package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-cd/lockstep/internal/server"
)

// queueOld is how long an application may wait for a worker before that is a fault.
const queueOld = time.Minute

// Ready says why the process does not do its work; nil when it does.
func (a *App) Ready() error {
	if a.stopping.Load() {
		return errors.New("stopping")
	}
	s := a.lease.State()
	switch {
	case s.Held:
	case s.Err != nil:
		return fmt.Errorf("the lease is not to be had: %w", s.Err)
	case s.Holder != "":
		return fmt.Errorf("standing by: %s holds the lease", s.Holder)
	default:
		return errors.New("starting: the cluster has not answered yet")
	}
	e := a.engine.Load()
	if e == nil {
		return errors.New("starting: the applications are being read")
	}
	return e.Settled()
}

// checks looks at every part. A process that stands by is well.
func (a *App) checks(ctx context.Context) []server.Check {
	cluster := server.Check{Name: "cluster", State: "answers", Err: a.installed(ctx)}
	lease := server.Check{Name: "lease", State: "held"}
	switch s := a.lease.State(); {
	case s.Held:
	case s.Err != nil:
		lease.Err = s.Err
	default:
		lease.State = "standing by for " + first(s.Holder, "nobody yet")
	}
	work := server.Check{Name: "engine", State: "not running"}
	if e := a.engine.Load(); e != nil {
		q := e.Queue()
		work.State = fmt.Sprintf("%d applications wait, %d are worked on", q.Waiting, q.Active)
		if q.Oldest > queueOld {
			work.Err = fmt.Errorf("an application waits for a worker since %s", q.Oldest.Round(time.Second))
		}
	}
	return []server.Check{cluster, lease, work}
}

func (a *App) pusher() server.Pusher {
	if e := a.engine.Load(); e != nil {
		return e
	}
	return nil // not a nil *Engine in the interface
}
