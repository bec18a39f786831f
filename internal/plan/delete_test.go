package plan

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

func TestDeleteMirrorsTheWaves(t *testing.T) {
	extra := func(kind, name, wave, options string) Extra {
		return Extra{Key: manifest.Key{Kind: kind, Namespace: "n", Name: name}, Annotations: map[string]string{WaveAnnotation: wave, SyncOptionsAnnotation: options}}
	}
	kept := extra("ConfigMap", "kept", "0", "")
	kept.Reason = "is kept"
	steps, left := Delete([]Extra{
		extra("Namespace", "ns", "-1", ""), extra("ConfigMap", "a", "0", "Prune=false"), extra("ConfigMap", "b", "5", "PruneLast=true,Prune=confirm"),
		extra("Deployment", "web", "0", ""), kept,
	})
	var got []string
	for _, s := range steps {
		var groups []string
		for _, g := range s.Groups {
			for _, task := range g {
				groups = append(groups, task.Key.Name)
			}
		}
		got = append(got, strings.Join(groups, ","))
	}
	if want := "[b web,a ns]"; fmt.Sprint(got) != want {
		t.Errorf("order %v, want %s", got, want)
	}
	if len(left) != 1 || left[0].Key.Name != "kept" {
		t.Errorf("kept %v", left)
	}
}

func TestDeletionHooks(t *testing.T) {
	hook := func(name string, annotations map[string]string) Desired {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		u.SetAnnotations(annotations)
		return Desired{Object: manifest.Object{Unstructured: u}}
	}
	hooks := []Desired{
		hook("late", map[string]string{HookAnnotation: "PreDelete", WaveAnnotation: "1"}),
		hook("sync", map[string]string{HookAnnotation: "PreSync"}),
		hook("helm", map[string]string{HelmHookAnnotation: "pre-delete,post-install", HelmWeightAnnotation: "-5"}),
		hook("both", map[string]string{HookAnnotation: "PreDelete,PostDelete"}),
		hook("own wins", map[string]string{HookAnnotation: "PostDelete", HelmHookAnnotation: "pre-delete"}),
		hook("plain", nil),
	}
	for phase, want := range map[Phase]string{PreDelete: "[helm both late]", PostDelete: "[both own wins]"} {
		var got []string
		for _, s := range DeletionHooks(hooks, phase) {
			for _, g := range s.Groups {
				for _, task := range g {
					if task.Phase != phase || task.Action != RunHook || hooks[task.Index].GetName() != task.Key.Name {
						t.Errorf("task %+v", task)
					}
					got = append(got, task.Key.Name)
				}
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", phase, got, want)
		}
	}
}

func TestPruneWaits(t *testing.T) {
	x := Extra{Key: manifest.Key{Kind: "ConfigMap", Namespace: "n", Name: "a"}, Waits: "for application b"}
	if p := Make(nil, nil, []Extra{x}, Options{Prune: true}); len(p.Waiting) != 1 || !p.Empty() || len(p.Kept) != 0 {
		t.Errorf("plan %+v", p)
	}
	if p := Make(nil, nil, []Extra{x}, Options{}); len(p.Waiting) != 0 || len(p.Kept) != 1 {
		t.Errorf("without prune: plan %+v", p)
	}
	x.Reason = "is kept"
	if p := Make(nil, nil, []Extra{x}, Options{Prune: true}); len(p.Waiting) != 0 || len(p.Kept) != 1 {
		t.Errorf("kept anyway: plan %+v", p)
	}
}
