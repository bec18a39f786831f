package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/engine"
	renderjob "github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// A sync by hand is the first to see a commit that moves an object to another application. Nobody else has looked by then,
// so the prune waits until the other has; who does not read what has changed holds up nothing and renders nothing.
func TestPruneWaitsForThoseWhoSeeTheCommitLater(t *testing.T) {
	w := newWorld(t)
	var g gate
	w.restart(false, func(o *engine.Options) {
		render := o.Render
		o.PollInterval = time.Hour // nobody but the sync asks the repository
		o.Render = func(ctx context.Context, in renderjob.Input) (renderjob.Output, error) {
			if err := g.pass(ctx, in.AppName, in.AppName == w.real("to")); err != nil {
				return renderjob.Output{}, err
			}
			return render(ctx, in)
		}
	})
	r := w.repo("m", map[string]string{
		"from/moved.yaml": configMap("moved", "1"), "from/gone.yaml": configMap("gone", "1"), "from/stays.yaml": configMap("stays", "1"),
		"to/own.yaml": configMap("own", "1"), "else/own.yaml": configMap("else", "1"),
	})
	w.app("from", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "from"}, manual)
	w.patchApp("from", `{"operation":{"sync":{}}}`)
	for _, name := range []string{"to", "else"} {
		w.app(name, v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: name})
	}
	for _, name := range []string{"from", "to", "else"} {
		w.settled(name, "")
	}
	before, err := w.resource("v1", "configmaps").Get(t.Context(), "moved", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.forgetRenders()
	g.close()
	sha := w.commit(r, map[string]string{
		"from/moved.yaml": gitserver.Deleted, "from/gone.yaml": gitserver.Deleted, "to/moved.yaml": configMap("moved", "1"),
	})
	w.patchApp("from", `{"operation":{"sync":{"prune":true}}}`)
	w.until("the prune waits", func() (string, bool) {
		op := operation(w.get("from"))
		return op, strings.Contains(op, "waits for application "+w.real("to")) && strings.Contains(op, "since its source changed")
	})
	for _, name := range []string{"moved", "gone"} {
		if _, there := w.configMap(name); !there {
			t.Errorf("%s was deleted before the other application was looked at", name)
		}
	}
	g.open()
	w.settled("to", sha)
	w.settled("from", sha)
	w.until("gone pruned", func() (string, bool) { _, there := w.configMap("gone"); return "it is there", !there })
	after, err := w.resource("v1", "configmaps").Get(t.Context(), "moved", metav1.GetOptions{})
	if err != nil || after.GetUID() != before.GetUID() {
		t.Errorf("moved was deleted and made again (%v)", err)
	}
	w.wantRendered("the commit", "from", "to")
}
