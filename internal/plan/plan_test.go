package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// object reads "Kind namespace/name key=value …"; the words behind the name are annotations, short for wave, hook, weight.
func object(text string) plan.Desired {
	words := strings.Fields(text)
	groups := map[string]string{
		"Deployment": "apps", "CustomResourceDefinition": "apiextensions.k8s.io", "Widget": "example.com", "Job": "batch",
		"APIService": "apiregistration.k8s.io", "Ingress": "networking.k8s.io",
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	apiVersion := "v1"
	if g := groups[words[0]]; g != "" {
		apiVersion = g + "/v1"
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(words[0])
	ns, name, ok := strings.Cut(words[1], "/")
	if !ok {
		ns, name = "", ns
	}
	u.SetNamespace(ns)
	u.SetName(name)
	if words[0] == "CustomResourceDefinition" {
		u.Object["spec"] = map[string]any{"group": "example.com", "names": map[string]any{"kind": "Widget"}}
	}
	if a := annotations(words[2:]); len(a) > 0 {
		u.SetAnnotations(a)
	}
	return plan.Desired{Object: manifest.Object{Unstructured: u}}
}

func annotations(words []string) map[string]string {
	names := map[string]string{
		"wave": plan.WaveAnnotation, "weight": plan.HelmWeightAnnotation, "hook": plan.HookAnnotation,
		"helm": plan.HelmHookAnnotation, "options": plan.SyncOptionsAnnotation,
	}
	a := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		a[names[k]] = v
	}
	return a
}

func objects(texts ...string) []plan.Desired {
	out := make([]plan.Desired, 0, len(texts))
	for _, t := range texts {
		out = append(out, object(t))
	}
	return out
}

func extras(texts ...string) []plan.Extra {
	out := make([]plan.Extra, 0, len(texts))
	for _, t := range texts {
		o := object(t)
		out = append(out, plan.Extra{Key: o.Key(), Annotations: o.GetAnnotations()})
	}
	return out
}

// show writes steps as lines, groups parted by bars.
func show(steps []plan.Step) []string {
	var lines []string
	for _, s := range steps {
		var groups []string
		for _, g := range s.Groups {
			var tasks []string
			for _, t := range g {
				sign := map[plan.Action]string{plan.Apply: "+", plan.Prune: "-", plan.RunHook: "!"}[t.Action]
				tasks = append(tasks, sign+t.Key.Kind+" "+t.Key.Name)
			}
			groups = append(groups, strings.Join(tasks, ", "))
		}
		lines = append(lines, fmt.Sprintf("%s %d: %s", s.Phase, s.Wave, strings.Join(groups, " | ")))
	}
	return lines
}

func diff(t *testing.T, got, want []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestOrderOfKinds(t *testing.T) {
	p := plan.Make(objects("Widget ns/w", "APIService a", "Deployment ns/d", "Job ns/j", "Service ns/s", "ConfigMap ns/b", "ConfigMap ns/a",
		"Secret ns/x", "ServiceAccount ns/sa", "Gadget ns/g", "Ingress ns/i", "Namespace ns"), nil, nil, plan.Options{})
	diff(t, show(p.Steps), []string{"Sync 0: +Namespace ns | +ServiceAccount sa | +Secret x | +ConfigMap a, +ConfigMap b | +Service s" +
		" | +Deployment d | +Job j | +Ingress i | +APIService a | +Gadget g, +Widget w"})
}

func TestWaves(t *testing.T) {
	cases := []struct {
		name    string
		desired []string
		want    []string
	}{
		{"by number", []string{"ConfigMap a wave=10", "ConfigMap b wave=-1", "ConfigMap c", "ConfigMap d wave=2"},
			[]string{"Sync -1: +ConfigMap b", "Sync 0: +ConfigMap c", "Sync 2: +ConfigMap d", "Sync 10: +ConfigMap a"}},
		{"hook weight of Helm", []string{"ConfigMap a weight=3", "ConfigMap b wave=1 weight=5"},
			[]string{"Sync 1: +ConfigMap b", "Sync 3: +ConfigMap a"}},
		{"no number is 0", []string{"ConfigMap a wave=first"}, []string{"Sync 0: +ConfigMap a"}},
		{"a namespace goes before what lives in it", []string{"Namespace ns wave=5", "ConfigMap ns/a wave=2", "ConfigMap ns/b wave=3"},
			[]string{"Sync 2: +Namespace ns | +ConfigMap a", "Sync 3: +ConfigMap b"}},
		{"an early namespace stays", []string{"Namespace ns wave=-5", "ConfigMap ns/a"},
			[]string{"Sync -5: +Namespace ns", "Sync 0: +ConfigMap a"}},
		{"a namespace nobody lives in stays", []string{"Namespace ns wave=5", "ConfigMap other/a"},
			[]string{"Sync 0: +ConfigMap a", "Sync 5: +Namespace ns"}},
		{"a definition goes before its objects", []string{"CustomResourceDefinition widgets wave=1", "Widget ns/a wave=-2"},
			[]string{"Sync -2: +CustomResourceDefinition widgets | +Widget a"}},
		{"a definition of another kind stays", []string{"CustomResourceDefinition widgets wave=1", "Gadget ns/a wave=-2"},
			[]string{"Sync -2: +Gadget a", "Sync 1: +CustomResourceDefinition widgets"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			diff(t, show(plan.Make(objects(c.desired...), nil, nil, plan.Options{}).Steps), c.want)
		})
	}
}

func TestHooks(t *testing.T) {
	cases := []struct {
		name           string
		desired, hooks []string
		install        bool
		want, onFail   []string
	}{
		{"phases", []string{"ConfigMap a"},
			[]string{"Job post hook=PostSync", "Job pre hook=PreSync wave=3", "Job sync hook=Sync wave=1", "Job fail hook=SyncFail"}, false,
			[]string{"PreSync 3: !Job pre", "Sync 0: +ConfigMap a", "Sync 1: !Job sync", "PostSync 0: !Job post"}, []string{"SyncFail 0: !Job fail"}},
		{"one hook in two phases, each once", nil, []string{"Job h hook=PostSync,PreSync,PreSync"}, false,
			[]string{"PreSync 0: !Job h", "PostSync 0: !Job h"}, nil},
		{"never run", nil, []string{"Job s hook=Skip", "Job d hook=PreDelete", "Job t helm=test", "Job n hook=Nonsense"}, false, nil, nil},
		{"Helm's install", nil, []string{"Job a helm=pre-install", "Job b helm=pre-upgrade", "Job c helm=post-install,post-upgrade"}, true,
			[]string{"PreSync 0: !Job a", "PostSync 0: !Job c"}, nil},
		{"Helm's upgrade", nil, []string{"Job a helm=pre-install", "Job b helm=pre-upgrade", "Job c helm=post-install,post-upgrade"}, false,
			[]string{"PreSync 0: !Job b", "PostSync 0: !Job c"}, nil},
		{"ours wins over Helm's", nil, []string{"Job a hook=PostSync helm=pre-upgrade"}, false, []string{"PostSync 0: !Job a"}, nil},
		{"a namespace goes before a hook in it", []string{"Namespace ns wave=2", "ConfigMap ns/a"}, []string{"Job ns/pre hook=PreSync wave=-1"}, false,
			[]string{"PreSync -1: +Namespace ns | !Job pre", "Sync 0: +ConfigMap a"}, nil},
		{"not before a hook of a failure", []string{"Namespace ns wave=2"}, []string{"Job ns/fail hook=SyncFail"}, false,
			[]string{"Sync 2: +Namespace ns"}, []string{"SyncFail 0: !Job fail"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := plan.Make(objects(c.desired...), objects(c.hooks...), nil, plan.Options{Install: c.install})
			diff(t, show(p.Steps), c.want)
			diff(t, show(p.OnFail), c.onFail)
		})
	}
}

func TestHookIndexesAndObjects(t *testing.T) {
	hooks := objects("Job b hook=PostSync", "Job a hook=PreSync")
	p := plan.Make(nil, hooks, nil, plan.Options{})
	for _, s := range p.Steps {
		task := s.Groups[0][0]
		if task.Object.Unstructured != hooks[task.Index].Unstructured {
			t.Errorf("%s has the index %d of another hook", task.Key, task.Index)
		}
	}
}

func TestIsHook(t *testing.T) {
	for words, want := range map[string]bool{
		"": false, "wave=1": false, "hook=PreSync": true, "hook=Skip": true, "hook=": true, "helm=post-install": true, "helm=test": true,
		"helm=crd-install": false, "helm=crd-install hook=PreSync": true,
	} {
		if got := plan.IsHook(annotations(strings.Fields(words))); got != want {
			t.Errorf("IsHook(%q) = %v", words, got)
		}
	}
}

func TestHookPolicies(t *testing.T) {
	cases := []struct {
		own, helm string
		want      []plan.DeletePolicy
	}{
		{"", "", []plan.DeletePolicy{plan.BeforeHookCreation}},
		{"nonsense", "", []plan.DeletePolicy{plan.BeforeHookCreation}},
		{"HookSucceeded", "", []plan.DeletePolicy{plan.HookSucceeded}},
		{"HookSucceeded, HookFailed", "before-hook-creation,hook-succeeded", []plan.DeletePolicy{plan.HookSucceeded, plan.HookFailed, plan.BeforeHookCreation}},
	}
	for _, c := range cases {
		got := plan.HookPolicies(map[string]string{plan.HookDeleteAnnotation: c.own, plan.HelmDeleteAnnotation: c.helm})
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q and %q (-want +got)\n%s", c.own, c.helm, d)
		}
	}
}

func TestPrune(t *testing.T) {
	prune := plan.Options{Prune: true}
	cases := []struct {
		name    string
		desired []string
		extra   []string
		opts    plan.Options
		want    []string
	}{
		{"before what is applied, in reverse order of kinds", []string{"Service s"},
			[]string{"Namespace old", "ConfigMap old/c", "Deployment old/d", "Widget old/w"}, prune,
			[]string{"Sync 0: -Widget w | -Deployment d | -ConfigMap c | -Namespace old | +Service s"}},
		{"waves are mirrored among themselves", []string{"Service s"},
			[]string{"ConfigMap first wave=0", "ConfigMap mid wave=1", "ConfigMap end wave=7"}, prune,
			[]string{"Sync 0: -ConfigMap end | +Service s", "Sync 1: -ConfigMap mid", "Sync 7: -ConfigMap first"}},
		{"last, by the application", []string{"Service s", "Service t wave=4"}, []string{"ConfigMap a wave=1", "ConfigMap b wave=2"},
			plan.Options{Prune: true, PruneLast: true},
			[]string{"Sync 0: +Service s", "Sync 4: +Service t", "Sync 5: -ConfigMap a, -ConfigMap b"}},
		{"last, by the object", []string{"Service s"}, []string{"ConfigMap a wave=-3 options=PruneLast=true", "ConfigMap b wave=3"}, prune,
			[]string{"Sync 0: +Service s", "Sync 3: -ConfigMap b", "Sync 4: -ConfigMap a"}},
		{"without anything else", nil, []string{"ConfigMap a"}, plan.Options{Prune: true, PruneLast: true}, []string{"Sync 1: -ConfigMap a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := plan.Make(objects(c.desired...), nil, extras(c.extra...), c.opts)
			diff(t, show(p.Steps), c.want)
			if len(p.Kept)+len(p.Unconfirmed) > 0 {
				t.Errorf("kept %v, unconfirmed %v", p.Kept, p.Unconfirmed)
			}
		})
	}
}

func TestPruneLastWaitsForHooksOfTheSamePhaseOnly(t *testing.T) {
	p := plan.Make(objects("Service s"), objects("Job h hook=Sync wave=6", "Job post hook=PostSync wave=9"), extras("ConfigMap a"),
		plan.Options{Prune: true, PruneLast: true})
	diff(t, show(p.Steps), []string{"Sync 0: +Service s", "Sync 6: !Job h", "Sync 7: -ConfigMap a", "PostSync 9: !Job post"})
}

func TestWhatIsKept(t *testing.T) {
	one := manifest.Key{Kind: "ConfigMap", Name: "a"}
	cases := []struct {
		name                string
		words               string
		reason              string
		opts                plan.Options
		prunes, unconfirmed bool
		kept                string
	}{
		{name: "pruned", opts: plan.Options{Prune: true}, prunes: true},
		{name: "no prune asked for", kept: "needs pruning"},
		{name: "a reason of the caller", reason: "is busy", opts: plan.Options{Prune: true}, kept: "is busy"},
		{name: "Prune=false of the object", words: "options=Prune=false", opts: plan.Options{Prune: true}, kept: "Prune=false"},
		{name: "Prune=false of the application", opts: plan.Options{Prune: true, NoPrune: true}, kept: "Prune=false"},
		{name: "Prune=true overrides the application", words: "options=Prune=true", opts: plan.Options{Prune: true, NoPrune: true}, prunes: true},
		{name: "options in one annotation", words: "options=Validate=false,Prune=false", opts: plan.Options{Prune: true}, kept: "Prune=false"},
		{name: "case counts", words: "options=prune=false", opts: plan.Options{Prune: true}, prunes: true},
		{name: "confirm of the object", words: "options=Prune=confirm", opts: plan.Options{Prune: true}, unconfirmed: true},
		{name: "confirm of the application", opts: plan.Options{Prune: true, Confirm: true}, unconfirmed: true},
		{name: "confirmed", words: "options=Prune=confirm", opts: plan.Options{Prune: true, Approved: true}, prunes: true},
		{name: "confirm where nothing is pruned", words: "options=Prune=confirm", kept: "needs pruning"},
		{name: "confirm of what can't be pruned", words: "options=Prune=confirm", reason: "is busy", opts: plan.Options{Prune: true}, kept: "is busy"},
		{name: "not selected", opts: plan.Options{Prune: true, Only: func(k manifest.Key) bool { return k != one }}},
		{name: "not selected, to be confirmed", words: "options=Prune=confirm",
			opts: plan.Options{Prune: true, Only: func(k manifest.Key) bool { return k != one }}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := extras("ConfigMap a " + c.words)
			x[0].Reason = c.reason
			p := plan.Make(nil, nil, x, c.opts)
			if p.Empty() == c.prunes {
				t.Errorf("steps %v", show(p.Steps))
			}
			if (len(p.Unconfirmed) == 1) != c.unconfirmed {
				t.Errorf("unconfirmed %v", p.Unconfirmed)
			}
			if (len(p.Kept) == 1) != (c.kept != "") || c.kept != "" && !strings.Contains(p.Kept[0].Reason, c.kept) {
				t.Errorf("kept %v, want %q", p.Kept, c.kept)
			}
		})
	}
}

func TestSelection(t *testing.T) {
	desired := objects("ConfigMap a", "ConfigMap b", "ConfigMap c")
	desired[1].InSync = true
	only := func(k manifest.Key) bool { return k.Name != "c" }
	diff(t, show(plan.Make(desired, nil, nil, plan.Options{Only: only}).Steps), []string{"Sync 0: +ConfigMap a, +ConfigMap b"})
	diff(t, show(plan.Make(desired, nil, nil, plan.Options{OutOfSyncOnly: true}).Steps), []string{"Sync 0: +ConfigMap a, +ConfigMap c"})
}

func TestOptions(t *testing.T) {
	s := plan.ParseOptions(" Prune=false ,Validate=false,, PrunePropagationPolicy=orphan")
	for option, want := range map[string]bool{"Prune=false": true, "Validate=false": true, "prune=false": false, "": false} {
		if s.Has(option) != want {
			t.Errorf("Has(%q) = %v", option, !want)
		}
	}
	if v, ok := s.Value("PrunePropagationPolicy"); v != "orphan" || !ok {
		t.Errorf("value %q, %v", v, ok)
	}
	if v, ok := s.Value("Replace"); ok {
		t.Errorf("an option that is not there has the value %q", v)
	}
}

func TestAutomate(t *testing.T) {
	all := plan.Auto{Enabled: true, Prune: true, SelfHeal: true}
	out := plan.Situation{OutOfSync: true}
	cases := []struct {
		name string
		auto plan.Auto
		s    plan.Situation
		want plan.Act
	}{
		{"off", plan.Auto{Prune: true, SelfHeal: true}, plan.Situation{OutOfSync: true, New: true}, plan.Rest},
		{"in step", all, plan.Situation{New: true}, plan.Rest},
		{"new", all, plan.Situation{OutOfSync: true, New: true}, plan.SyncAll},
		{"new, without self-heal", plan.Auto{Enabled: true}, plan.Situation{OutOfSync: true, New: true}, plan.SyncAll},
		{"drift", all, out, plan.Heal},
		{"drift without self-heal", plan.Auto{Enabled: true, Prune: true}, out, plan.Rest},
		{"failed", all, plan.Situation{OutOfSync: true, Failed: true}, plan.Refuse},
		{"new after a failure", all, plan.Situation{OutOfSync: true, New: true}, plan.SyncAll},
		{"extras only", all, plan.Situation{Extras: 1, New: true}, plan.SyncAll},
		{"extras only, known", all, plan.Situation{Extras: 1}, plan.SyncAll},
		{"extras only, failed", all, plan.Situation{Extras: 1, Failed: true}, plan.Refuse},
		{"extras without prune", plan.Auto{Enabled: true, SelfHeal: true}, plan.Situation{Extras: 1, New: true}, plan.Rest},
		{"empty", all, plan.Situation{Extras: 1, Empty: true, New: true}, plan.Refuse},
		{"empty without prune", plan.Auto{Enabled: true}, plan.Situation{Extras: 1, Empty: true, New: true}, plan.Rest},
		{"empty and allowed", plan.Auto{Enabled: true, Prune: true, AllowEmpty: true}, plan.Situation{Extras: 1, Empty: true, New: true}, plan.SyncAll},
		{"empty and nothing left", all, plan.Situation{Empty: true, New: true}, plan.Rest},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, why := plan.Automate(c.auto, c.s)
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if c.s.Empty && c.want == plan.Refuse && !strings.Contains(why, "allowEmpty") {
				t.Errorf("the reason %q does not say what to do", why)
			}
		})
	}
}
