package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cause"
	"github.com/lockstep-cd/lockstep/internal/evidence"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// longestLook is the longest wait between two looks for a cause. What a pod goes through while its application stays as it is
// wakes nobody, so it is looked for: seldom, and only while the application is not well.
const longestLook = 5 * time.Minute

// believed is after how many looks in a row that find nothing a cause is taken back.
const believed = 2

// whys find out why applications are not well, beside the loop: it costs reads that no sync should wait for. The sentence
// stands in status.health.message (DESIGN.md §2.6).
type whys struct {
	gather func(context.Context, *v1alpha1.Application) (evidence.Found, error)
	wake   func(key string)
	// after is the wait before the first look at an application that is Progressing; others are looked at in a tenth of it.
	after time.Duration
	log   *slog.Logger
	queue *queue.Queue

	mu    sync.Mutex
	known map[string]*why
}

// why is what is known of an application that is not well.
type why struct {
	// app is as it was last assessed, with the health of its objects.
	app *v1alpha1.Application
	// text is the cause with the next step; empty when none was found.
	text string
	// silent is how many looks in a row have found nothing since text was found.
	silent int
	// wait is the time until the look after the next one.
	wait time.Duration
}

// tell completes the health of an application with the cause that is known, and has it looked for. The objects of app carry
// their health.
func (w *whys) tell(key string, app *v1alpha1.Application, old v1alpha1.AppHealthStatus) string {
	health := app.Status.Health
	w.mu.Lock()
	defer w.mu.Unlock()
	if health.Status.Well() {
		delete(w.known, key)
		w.queue.Forget(key)
		return health.Message
	}
	y := w.known[key]
	switch {
	case y == nil && old.Status == health.Status: // from before a restart: the next look confirms it, or takes it back
		y = &why{text: old.Message, silent: believed - 1, wait: w.first(health)}
	case y == nil, !sameSync(y.app, app): // what kept the earlier objects from being well may not concern these
		y = &why{wait: w.first(health)}
	case y.app.Status.Health.Status != health.Status:
		y.wait = w.first(health)
	}
	w.known[key] = y
	y.app = app
	w.queue.AddAfter(key, queue.Housekeeping, min(y.wait, w.after))
	if y.text == "" {
		return health.Message
	}
	return y.text
}

// first is the wait before the first look at an application.
func (w *whys) first(h v1alpha1.AppHealthStatus) time.Duration {
	if h.Status == v1alpha1.HealthProgressing {
		return w.after
	}
	return w.after / 10
}

// sameSync tells whether no sync began between two assessments.
func sameSync(a, b *v1alpha1.Application) bool {
	began := func(app *v1alpha1.Application) *metav1.Time {
		if app.Status.OperationState == nil {
			return nil
		}
		return &app.Status.OperationState.StartedAt
	}
	return began(a).Equal(began(b))
}

func (w *whys) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, key)
	w.queue.Forget(key)
}

// run looks for causes, one application at a time, until ctx ends.
func (w *whys) run(ctx context.Context) {
	for {
		key, ok := w.queue.Get(ctx, queue.Housekeeping)
		if !ok {
			return
		}
		w.look(ctx, key)
		w.queue.Done(key)
	}
}

// look finds the cause for one application. What was said stands for one look that finds nothing: a container that just
// started again is no news.
func (w *whys) look(ctx context.Context, key string) {
	w.mu.Lock()
	y := w.known[key]
	var app *v1alpha1.Application
	if y != nil {
		app = y.app
	}
	w.mu.Unlock()
	if app == nil {
		return
	}
	found, err := w.gather(ctx, app)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.log.Warn("cause", "application", key, "error", err)
	}
	c, ok := cause.OfHealth(app, found.Input)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[key] != y {
		return
	}
	y.wait = min(2*y.wait, longestLook)
	w.queue.AddAfter(key, queue.Housekeeping, y.wait)
	text := y.text
	switch {
	case ok:
		text, y.silent = c.Sentence+"; "+c.Next, 0
	case err == nil:
		if y.silent++; y.silent >= believed {
			text = ""
		}
	}
	if text != y.text {
		y.text = text
		w.wake(key)
	}
}

// unwell is the application as it is to be reported, with the health of those of its objects that are not well.
func (l *look) unwell(s v1alpha1.ApplicationStatus) *v1alpha1.Application {
	app := &v1alpha1.Application{TypeMeta: l.app.TypeMeta, ObjectMeta: l.app.ObjectMeta}
	app.Status.Health, app.Status.OperationState = s.Health, s.OperationState
	for _, it := range l.assessed() {
		if it.HasHealth && !it.Health.Status.Well() && !it.IgnoreHealth {
			health := it.Health
			app.Status.Resources = append(app.Status.Resources, v1alpha1.ResourceStatus{
				Group: it.Key.Group, Kind: it.Key.Kind, Namespace: it.Key.Namespace, Name: it.Key.Name, Health: &health,
			})
		}
	}
	return app
}
