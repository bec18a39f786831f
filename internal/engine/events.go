package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
)

// events writes Kubernetes Events about applications, behind the work: when there are too many to write, the newest are
// dropped and counted, never the work held up.
type events struct {
	writer  *apply.Writer
	log     *slog.Logger
	queue   chan *unstructured.Unstructured
	dropped atomic.Int64
	serial  atomic.Int64
}

func newEvents(w *apply.Writer, log *slog.Logger) *events {
	return &events{writer: w, log: log, queue: make(chan *unstructured.Unstructured, 1000)}
}

func (v *events) run(ctx context.Context) {
	t := apply.Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: "events"}, Namespaced: true, Patchable: true}
	for {
		select {
		case <-ctx.Done():
			return
		case ev := <-v.queue:
			if err := v.writer.Create(ctx, t, ev); err != nil && ctx.Err() == nil {
				v.log.Warn("event", "event", ev.GetName(), "error", err)
			}
		}
	}
}

// announce reports the end of an operation.
func (e *Engine) announce(app *v1alpha1.Application, r *running, phase v1alpha1.OperationPhase, message string) {
	kind := "Normal"
	if phase != v1alpha1.OperationSucceeded {
		kind = "Warning"
	}
	who := "automated sync"
	if !r.op.InitiatedBy.Automated {
		who = "sync"
		if r.op.InitiatedBy.Username != "" {
			who += " by " + r.op.InitiatedBy.Username
		}
	}
	e.events.add(app, kind, "OperationCompleted", fmt.Sprintf("%s: %s", who, oneLine(message)), e.opts.Now())
}

func (v *events) add(app *v1alpha1.Application, kind, reason, message string, now time.Time) {
	at := now.UTC().Format(time.RFC3339)
	ev := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{
			"name": fmt.Sprintf("%s.%x.%x", app.Name, now.UnixNano(), v.serial.Add(1)), "namespace": app.Namespace,
		},
		"involvedObject": map[string]any{
			"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.ApplicationKind, "name": app.Name,
			"namespace": app.Namespace, "uid": string(app.UID), "resourceVersion": app.ResourceVersion,
		},
		"reason": reason, "message": message[:min(len(message), 1000)], "type": kind, "count": int64(1),
		"firstTimestamp": at, "lastTimestamp": at, "source": map[string]any{"component": "lockstep"},
		"reportingComponent": "lockstep", "reportingInstance": "lockstep",
	}}
	select {
	case v.queue <- ev:
	default:
		v.dropped.Add(1)
	}
}
