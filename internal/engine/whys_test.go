package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
)

// quickly has causes looked for soon.
func (w *world) quickly() {
	w.stop()
	w.tune = func(o *engine.Options) { o.ExplainAfter = 500 * time.Millisecond }
	w.start()
}

// The status says why an application is not well, down to the container, and stops when it is (issue 6, DESIGN.md §2.6).
func TestTheStatusSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.quickly()
	r := w.repo("why", map[string]string{"app/web.yaml": deployment("web", "registry.k8s.io/pause:fail-image-pull", 1)})
	w.app("why", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"})
	var health v1alpha1.AppHealthStatus
	says := func(parts ...string) {
		t.Helper()
		w.until("health that says "+strings.Join(parts, ", "), func() (string, bool) {
			health = w.get("why").Status.Health
			for _, part := range parts {
				if !strings.Contains(health.Message, part) {
					return health.Message, false
				}
			}
			return health.Message, true
		})
	}
	says("Deployment "+w.dest+"/web", "registry.k8s.io/pause:fail-image-pull", "; ")
	if strings.Contains(health.Message, "web-") {
		t.Errorf("names a pod: %s", health.Message)
	}
	w.quickly() // a restart keeps the sentence, and finds it again
	says("registry.k8s.io/pause:fail-image-pull")
	w.commit(r, map[string]string{"app/web.yaml": deployment("web", "registry.k8s.io/pause:3.9", 1)})
	w.settled("why", "")
	if m := w.get("why").Status.Health.Message; m != "" {
		t.Errorf("well, and says %q", m)
	}
}
