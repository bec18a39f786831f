package engine

import (
	"time"

	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/pressure"
)

// completed gives the options with their defaults, and a way to the cluster on which all clients share one pace.
func (o Options) completed(pace *pressure.Limiter) Options {
	if o.Workers == 0 {
		o.Workers = 16
	}
	if o.PollInterval == 0 {
		o.PollInterval = 2 * time.Minute
	}
	if o.WaitNote == 0 {
		o.WaitNote = 15 * time.Minute
	}
	if o.SettleAfter == 0 {
		o.SettleAfter = 2 * time.Second
	}
	if o.ExplainAfter == 0 {
		o.ExplainAfter = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.REST = rest.CopyConfig(o.REST)
	o.REST.Wrap(pace.Wrap)
	return o
}
