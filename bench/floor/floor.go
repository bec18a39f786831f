// Package floor owns the unavoidable: a bare program that creates the Applications, applies their objects and writes one
// final status onto each, with 16 workers and nothing else. It is what Lockstep's time, memory and processor time are
// compared with. The same program without the last two steps creates the Applications for Lockstep.
//
// It may depend on workload and kube, never on a package of Lockstep beyond api.
package floor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/workload"
)

// Workers is how many requests are under way at once.
const Workers = 16

// manager is the field manager of the floor's applies.
const manager = "floor"

// Config is what the floor's process reads first.
type Config struct {
	Kubeconfig string        `json:"kubeconfig"`
	Spec       workload.Spec `json:"spec"`
	// CreateOnly leaves objects and status to somebody else.
	CreateOnly bool `json:"createOnly"`
}

// Message is what the process says: Ready first, then, after any value was sent to it, the result.
type Message struct {
	Ready bool `json:"ready,omitempty"`
	// First is just before the first request was sent, Last just after the last answer.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Requests sent.
	Requests int64  `json:"requests"`
	Error    string `json:"error,omitempty"`
}

// Main is the process: it reads a Config and a go from in, answers on out, and stays until in ends, so that its memory
// and processor time can be read.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	read, write := json.NewDecoder(in), json.NewEncoder(out)
	var c Config
	if err := read.Decode(&c); err != nil {
		return fmt.Errorf("floor: configuration: %w", err)
	}
	client, err := kube.Client(c.Kubeconfig)
	if err != nil {
		return err
	}
	// The connection is made before the clock starts.
	if err := client.Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return fmt.Errorf("floor: connect: %w", err)
	}
	if err := write.Encode(Message{Ready: true}); err != nil {
		return err
	}
	var start any
	if err := read.Decode(&start); err != nil {
		return fmt.Errorf("floor: go: %w", err)
	}
	result := run(ctx, client, c)
	if err := write.Encode(result); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

type writer struct {
	client   rest.Interface
	spec     workload.Spec
	requests atomic.Int64
}

func run(ctx context.Context, client rest.Interface, c Config) Message {
	w := &writer{client: client, spec: c.Spec}
	steps := []func(context.Context, int) error{w.create}
	if !c.CreateOnly {
		steps = append(steps, w.apply, w.status)
	}
	var next atomic.Int64
	first := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for range Workers {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= c.Spec.Applications {
					return nil
				}
				for _, step := range steps {
					if err := step(ctx, i); err != nil {
						return err
					}
				}
			}
		})
	}
	m := Message{First: first}
	if err := g.Wait(); err != nil {
		m.Error = err.Error()
	}
	m.Last, m.Requests = time.Now(), w.requests.Load()
	return m
}

func (w *writer) create(ctx context.Context, i int) error {
	body, err := json.Marshal(w.spec.Application(i))
	if err != nil {
		return fmt.Errorf("application %s: %w", w.spec.Name(i), err)
	}
	w.requests.Add(1)
	if err := w.client.Post().AbsPath(kube.Applications(w.spec.ControlNamespace)).Body(body).Do(ctx).Error(); err != nil {
		return fmt.Errorf("application %s: create: %w", w.spec.Name(i), err)
	}
	return nil
}

func (w *writer) apply(ctx context.Context, i int) error {
	objects, err := w.spec.Objects(i, workload.FirstVersion)
	if err != nil {
		return err
	}
	for _, o := range objects {
		metadata := o.Content["metadata"].(map[string]any)
		metadata["namespace"] = w.spec.Namespace(i)
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
			metadata["annotations"] = annotations
		}
		// What any owner of many applications has to write, so the floor's objects carry it, too.
		annotations["argocd.argoproj.io/tracking-id"] = w.spec.TrackingID(i, o.Kind)
		body, err := json.Marshal(o.Content)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.Kind.Kind, w.spec.Name(i), err)
		}
		w.requests.Add(1)
		err = w.client.Patch(types.ApplyYAMLPatchType).AbsPath(o.Kind.ObjectPath(w.spec.Namespace(i), w.spec.Name(i))).
			Param("fieldManager", manager).Param("force", "true").Body(body).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("%s %s/%s: apply: %w", o.Kind.Kind, w.spec.Namespace(i), w.spec.Name(i), err)
		}
	}
	return nil
}

func (w *writer) status(ctx context.Context, i int) error {
	status, err := w.spec.Status(i, time.Now())
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("application %s: status: %w", w.spec.Name(i), err)
	}
	w.requests.Add(1)
	path := kube.Applications(w.spec.ControlNamespace) + "/" + w.spec.Name(i)
	if err := w.client.Patch(types.MergePatchType).AbsPath(path).Body(body).Do(ctx).Error(); err != nil {
		return fmt.Errorf("application %s: status: %w", w.spec.Name(i), err)
	}
	return nil
}
