package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/workload"
)

// progressInterval is the time between two lines of progress.
const progressInterval = time.Second

// Main is the process: it reads a Config and Commands from in, says Messages on out, and ends with in.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	read := json.NewDecoder(in)
	var c Config
	if err := read.Decode(&c); err != nil {
		return fmt.Errorf("observer: configuration: %w", err)
	}
	client, err := kube.Client(c.Kubeconfig)
	if err != nil {
		return err
	}
	v := &voice{out: json.NewEncoder(out)}
	s, err := newState(c.Spec, time.Now(), v.say)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer cancel()
		return obey(read, s, v)
	})
	begun := watchAll(ctx, g, client, s)
	g.Go(func() error {
		if begun(ctx) {
			v.say(Message{Watching: true})
			report(ctx, s, v)
		}
		return nil
	})
	err = g.Wait()
	if err != nil {
		v.say(Message{Error: err.Error()})
	}
	return err
}

// voice keeps the messages of several goroutines whole.
type voice struct {
	mu  sync.Mutex
	out *json.Encoder
}

// say does not report an error: when nobody listens any more, the input ends, too.
func (v *voice) say(m Message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.out.Encode(m)
}

func obey(read *json.Decoder, s *state, v *voice) error {
	for {
		var c Command
		if err := read.Decode(&c); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("observer: command: %w", err)
		}
		answer := Message{ID: c.ID}
		if c.Expect != nil {
			if err := s.expect(*c.Expect); err != nil {
				return err
			}
		}
		if c.Count {
			answer.Counts = new(s.count(time.Now()))
		}
		v.say(answer)
	}
}

func report(ctx context.Context, s *state, v *voice) {
	t := time.NewTicker(progressInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p := s.progress()
			v.say(Message{Progress: &p})
		}
	}
}

// watchAll starts a watch for the Applications and one for each kind. The returned function waits until all have begun.
func watchAll(ctx context.Context, g *errgroup.Group, client rest.Interface, s *state) func(context.Context) bool {
	watchers := []*watcher{applicationWatcher(client, s)}
	for n, name := range s.spec.Kinds {
		watchers = append(watchers, objectWatcher(client, s, n, name))
	}
	var all sync.WaitGroup
	all.Add(len(watchers))
	for _, w := range watchers {
		w.begun = all.Done
		g.Go(func() error { return w.run(ctx) })
	}
	begun := make(chan struct{})
	go func() {
		all.Wait()
		close(begun)
	}()
	return func(ctx context.Context) bool {
		select {
		case <-begun:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func applicationWatcher(client rest.Interface, s *state) *watcher {
	return &watcher{
		client: client, path: kube.Applications(s.spec.ControlNamespace),
		saw: func(name, _ string, got *item, now time.Time) {
			if i, ok := s.spec.Index(name); ok {
				s.sawApplication(i, got, now)
			}
		},
		lost: func(now time.Time) {
			for i := range s.spec.Applications {
				s.sawApplication(i, nil, now)
			}
		},
	}
}

func objectWatcher(client rest.Interface, s *state, n int, name string) *watcher {
	kind, _ := workload.KindOf(name) // the state was built from the same names
	return &watcher{
		client: client, path: kind.ListPath(),
		saw: func(name, namespace string, got *item, now time.Time) {
			if i, ok := s.spec.Index(name); ok && namespace == s.spec.Namespace(i) {
				s.sawObject(i, n, got, now)
			}
		},
		lost: func(now time.Time) {
			for i := range s.spec.Applications {
				s.sawObject(i, n, nil, now)
			}
		},
	}
}
