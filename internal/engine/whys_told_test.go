package engine

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cause"
	"github.com/lockstep-cd/lockstep/internal/evidence"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// inquiry is a whys whose looks find what the test says, as often as the test says.
type inquiry struct {
	*whys
	found evidence.Found
	woken int
}

func newInquiry(t *testing.T) *inquiry {
	t.Helper()
	i := &inquiry{}
	i.whys = &whys{
		gather: func(context.Context, *v1alpha1.Application) (evidence.Found, error) { return i.found, nil },
		wake:   func(string) { i.woken++ },
		after:  time.Hour, log: slog.New(slog.DiscardHandler), queue: queue.New(queue.Options{}), known: map[string]*why{},
	}
	t.Cleanup(i.queue.Close)
	return i
}

// hear is what the status says after an assessment; began tells syncs apart.
func (i *inquiry) hear(health v1alpha1.HealthStatusCode, began int64, old v1alpha1.AppHealthStatus) string {
	app := &v1alpha1.Application{}
	app.Status.Health = v1alpha1.AppHealthStatus{Status: health, Message: "assessed"}
	app.Status.OperationState = &v1alpha1.OperationState{StartedAt: metav1.Unix(began, 0)}
	return i.tell("ns/a", app, old)
}

func (i *inquiry) pullFails(image string) {
	i.found.Input = cause.Input{Subtree: []cause.Object{{Fields: field.Map{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": "ns", "uid": "1"},
		"status": map[string]any{"phase": "Pending", "containerStatuses": []any{map[string]any{
			"name": "c", "image": image, "state": map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff", "message": image + ": not found"}},
		}}},
	}, Health: v1alpha1.HealthStatus{Status: v1alpha1.HealthProgressing}}}}
}

// A cause is told from the look that found it until the second in a row that does not, or the next sync.
func TestHowLongACauseIsTold(t *testing.T) {
	i, none := newInquiry(t), v1alpha1.AppHealthStatus{}
	expect := func(when, got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("%s: %q, want %q in it", when, got, part)
		}
	}
	expect("before a look", i.hear("Progressing", 1, none), "assessed")
	i.pullFails("registry.example.com/one")
	i.look(t.Context(), "ns/a")
	i.look(t.Context(), "ns/a")
	expect("found", i.hear("Progressing", 1, none), "registry.example.com/one")
	expect("as bad as before", i.hear("Degraded", 1, none), "registry.example.com/one")
	i.found.Input = cause.Input{}
	i.look(t.Context(), "ns/a")
	expect("one look found nothing", i.hear("Degraded", 1, none), "registry.example.com/one")
	i.look(t.Context(), "ns/a")
	expect("two looks found nothing", i.hear("Degraded", 1, none), "assessed")
	if i.woken != 2 {
		t.Errorf("woken %d times by 4 looks, of which two brought something new", i.woken)
	}
	i.pullFails("registry.example.com/two")
	i.look(t.Context(), "ns/a")
	expect("another cause", i.hear("Degraded", 1, none), "registry.example.com/two")
	expect("a new sync", i.hear("Progressing", 2, none), "assessed")
	if got := i.hear("Healthy", 2, none); got != "assessed" || len(i.known) != 0 {
		t.Errorf("well: %q, %d known", got, len(i.known))
	}
}

// What stood in the status before a restart stands until the first look.
func TestACauseFromBeforeARestart(t *testing.T) {
	i, before := newInquiry(t), v1alpha1.AppHealthStatus{Status: "Degraded", Message: "told before"}
	if got := i.hear("Degraded", 1, before); got != "told before" {
		t.Errorf("at the start: %q", got)
	}
	i.look(t.Context(), "ns/a")
	if got := i.hear("Degraded", 1, before); got != "assessed" {
		t.Errorf("after a look that found nothing: %q", got)
	}
	if got := newInquiry(t).hear("Progressing", 1, before); got != "assessed" {
		t.Errorf("with another health: %q", got)
	}
}
