package cluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// Silence is for how long a watch may bring neither event nor bookmark before it is made anew (DESIGN.md §4). The API server
// sends a bookmark about once a minute, so that a watch which is silent for longer is most often one that nothing comes
// through any more: a connection that a proxy holds open, an API server that stands still.
const Silence = 3 * time.Minute

// Retries are the pauses after which a watch that failed is made again: up to some seconds. With the library's own, of up to
// a minute, a change by hand could go unseen for that long after the API server has come back.
func Retries() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second}
}

// Watchdog looks after watches. The zero value lets none be silent for longer than Silence.
type Watchdog struct {
	// Silence is how long a watch may be silent; default Silence.
	Silence time.Duration
	// Renewed is told of a watch that was ended because it was silent for so long; it must not block.
	Renewed func(kind string, silent time.Duration)
}

// Guard passes on what w brings, and ends when w has been silent for too long. The reflector that reads it then watches
// anew from the last version it knows, and lists again only where that version is too old.
func (d Watchdog) Guard(w watch.Interface, kind string) watch.Interface {
	if d.Silence == 0 {
		d.Silence = Silence
	}
	g := &guarded{watch: w, events: make(chan watch.Event), stop: make(chan struct{}), ended: make(chan struct{})}
	go g.run(d, kind) // ends with Stop, which its reader owes it
	return g
}

// guarded is a watch with somebody who listens whether it still says anything.
type guarded struct {
	watch  watch.Interface
	events chan watch.Event
	stop   chan struct{}
	once   sync.Once
	ended  chan struct{}
}

// ResultChan implements watch.Interface.
func (g *guarded) ResultChan() <-chan watch.Event { return g.events }

// Stop implements watch.Interface.
func (g *guarded) Stop() {
	g.once.Do(func() { close(g.stop) })
	<-g.ended
}

func (g *guarded) run(d Watchdog, kind string) {
	defer close(g.ended)
	defer g.watch.Stop()
	defer close(g.events)
	silence := time.NewTimer(d.Silence)
	defer silence.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-silence.C:
			if d.Renewed != nil {
				d.Renewed(kind, d.Silence)
			}
			return
		case ev, ok := <-g.watch.ResultChan():
			if !ok {
				return
			}
			select {
			case g.events <- ev:
			case <-g.stop:
				return
			}
			silence.Reset(d.Silence) // what the reader takes its time with is no silence
		}
	}
}
