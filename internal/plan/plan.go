// Package plan owns what a sync does and in which order: phases, waves, kinds, prune (the contract's §2.2–2.6 as changed
// by DESIGN.md §2.5). It is pure: values in, a plan out; it holds no client and knows no clock.
package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Annotations that steer a sync.
const (
	WaveAnnotation        = "argocd.argoproj.io/sync-wave"
	HelmWeightAnnotation  = "helm.sh/hook-weight"
	SyncOptionsAnnotation = "argocd.argoproj.io/sync-options"
)

// Action is what happens to one object.
type Action uint8

// The actions.
const (
	Apply Action = iota + 1
	Prune
	// RunHook makes a hook and waits for its end.
	RunHook
)

// Desired is one object that the source declares.
type Desired struct {
	manifest.Object
	// InSync tells that the live object needs nothing.
	InSync bool
}

// Extra is a live object of the application that the source does not declare.
type Extra struct {
	Key manifest.Key
	// Annotations of the live object, as far as they steer the prune.
	Annotations map[string]string
	// Reason says why the object can't be pruned; empty when it can.
	Reason string
	// Waits says what its prune has to wait for; empty when for nothing.
	Waits string
}

// Options of one sync.
type Options struct {
	// Prune deletes what the source does not declare.
	Prune bool
	// PruneLast moves every prune behind the last wave.
	PruneLast bool
	// NoPrune is the application's Prune=false.
	NoPrune bool
	// Confirm is the application's Prune=confirm; Approved tells that a person has confirmed since the sync began.
	Confirm, Approved bool
	// OutOfSyncOnly skips objects that are in sync.
	OutOfSyncOnly bool
	// Install tells that the application was never deployed; it decides between Helm's install and upgrade hooks.
	Install bool
	// Only limits the sync to some objects; nil takes all.
	Only func(manifest.Key) bool
}

// Task is one action on one object.
type Task struct {
	Action Action
	Key    manifest.Key
	// Object is what is applied; nil for a prune.
	Object *manifest.Object
	Phase  Phase
	Wave   int
	// Index of the hook among those given; one hook may run in several phases.
	Index int
}

// Step is what can be done without waiting for anybody: groups one after another, the tasks of a group at once.
type Step struct {
	Phase  Phase
	Wave   int
	Groups [][]Task
}

// Plan is the whole sync.
type Plan struct {
	Steps []Step
	// OnFail runs when a step failed.
	OnFail []Step
	// Unconfirmed are objects whose prune waits for a person's word.
	Unconfirmed []manifest.Key
	// Waiting are objects whose prune has to wait, with what for.
	Waiting []Kept
	// Kept are objects that would be pruned and are not, with the reason.
	Kept []Kept
}

// Kept is an extra object that stays.
type Kept struct {
	Key    manifest.Key
	Reason string
}

// Empty tells that nothing is to be done.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// Make orders a sync.
//
// Hooks are left out by giving none: in a selective sync and with the strategy apply. Steps of the phase SyncFail are in
// OnFail; they run only when something failed.
func Make(desired, hooks []Desired, extra []Extra, opts Options) Plan {
	tasks := append(applyTasks(desired, opts), hookTasks(hooks, opts)...)
	moveForward(tasks)
	extra, unconfirmed := confirmed(extra, opts)
	extra, waiting := ready(extra, opts)
	prunes, kept := pruneTasks(extra, opts, tasks)
	all := slices.Concat(prunes, tasks)
	p := Plan{Steps: arrange(all), Kept: kept, Unconfirmed: unconfirmed, Waiting: waiting}
	if at := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Phase == SyncFail }); at >= 0 {
		p.Steps, p.OnFail = p.Steps[:at:at], p.Steps[at:]
	}
	return p
}

func applyTasks(desired []Desired, opts Options) []Task {
	tasks := make([]Task, 0, len(desired))
	for i := range desired {
		d := &desired[i]
		key := d.Key()
		if opts.Only != nil && !opts.Only(key) || opts.OutOfSyncOnly && d.InSync {
			continue
		}
		tasks = append(tasks, Task{Action: Apply, Key: key, Object: &d.Object, Phase: Sync, Wave: Wave(d.GetAnnotations())})
	}
	return tasks
}

// moveForward puts a Namespace before the first object that lives in it, and a CRD before the first object of its kind,
// hooks included: the order people mean, whatever their phases and waves say.
func moveForward(tasks []Task) {
	firstIn := map[string]*Task{}
	firstOf := map[string]*Task{}
	note := func(m map[string]*Task, k string, t *Task) {
		if first := m[k]; first == nil || t.before(first) {
			m[k] = t
		}
	}
	for i := range tasks {
		t := &tasks[i]
		note(firstIn, t.Key.Namespace, t)
		note(firstOf, t.Key.Group+"/"+t.Key.Kind, t)
	}
	for i := range tasks {
		t := &tasks[i]
		var first *Task
		switch {
		case t.Action != Apply:
		case t.Key.Group == "" && t.Key.Kind == "Namespace":
			first = firstIn[t.Key.Name]
		case t.Key.Group == "apiextensions.k8s.io" && t.Key.Kind == "CustomResourceDefinition":
			group, kind := crdKind(t.Object)
			first = firstOf[group+"/"+kind]
		}
		if first != nil && first.before(t) {
			t.Phase, t.Wave = first.Phase, first.Wave
		}
	}
}

func (t *Task) before(other *Task) bool {
	return cmp.Or(cmp.Compare(t.Phase.rank(), other.Phase.rank()), cmp.Compare(t.Wave, other.Wave)) < 0
}

func crdKind(o *manifest.Object) (group, kind string) {
	spec, _ := o.Object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ = spec["group"].(string)
	kind, _ = names["kind"].(string)
	return group, kind
}

func pruneTasks(extra []Extra, opts Options, others []Task) ([]Task, []Kept) {
	var mirrored, last []Task
	var kept []Kept
	for _, e := range extra {
		if opts.Only != nil && !opts.Only(e.Key) {
			continue
		}
		options := ParseOptions(e.Annotations[SyncOptionsAnnotation])
		if reason := keepReason(e, options, opts); reason != "" {
			kept = append(kept, Kept{Key: e.Key, Reason: reason})
			continue
		}
		t := Task{Action: Prune, Key: e.Key, Phase: Sync, Wave: Wave(e.Annotations)}
		if opts.PruneLast || options.Has("PruneLast=true") {
			last = append(last, t)
		} else {
			mirrored = append(mirrored, t)
		}
	}
	mirror(mirrored)
	behind := lastWave(slices.Concat(mirrored, others)) + 1
	for i := range last {
		last[i].Wave = behind
	}
	return append(mirrored, last...), kept
}

// confirmed takes out what may be pruned only after a person has said so.
func confirmed(extra []Extra, opts Options) (rest []Extra, unconfirmed []manifest.Key) {
	for _, e := range extra {
		options := ParseOptions(e.Annotations[SyncOptionsAnnotation])
		asks := options.Has("Prune=confirm") || opts.Confirm && !options.Has("Prune=true") && !options.Has("Prune=false")
		selected := opts.Only == nil || opts.Only(e.Key)
		if asks && selected && opts.Prune && !opts.Approved && e.Reason == "" {
			unconfirmed = append(unconfirmed, e.Key)
			continue
		}
		rest = append(rest, e)
	}
	return rest, unconfirmed
}

// ready takes out what would be pruned and has to wait.
func ready(extra []Extra, opts Options) (rest []Extra, waiting []Kept) {
	for _, e := range extra {
		options := ParseOptions(e.Annotations[SyncOptionsAnnotation])
		selected := opts.Only == nil || opts.Only(e.Key)
		if e.Waits != "" && selected && keepReason(e, options, opts) == "" {
			waiting = append(waiting, Kept{Key: e.Key, Reason: e.Waits})
			continue
		}
		rest = append(rest, e)
	}
	return rest, waiting
}

func keepReason(e Extra, options Set, opts Options) string {
	switch {
	case e.Reason != "":
		return e.Reason
	case options.Has("Prune=false"), opts.NoPrune && !options.Has("Prune=true"):
		return "is kept: its sync options say Prune=false"
	case !opts.Prune:
		return "is no longer declared and needs pruning, which this sync does not do"
	}
	return ""
}

// mirror reverses the waves of the prunes among themselves: what was created last goes first.
func mirror(tasks []Task) {
	var waves []int
	for _, t := range tasks {
		if !slices.Contains(waves, t.Wave) {
			waves = append(waves, t.Wave)
		}
	}
	slices.Sort(waves)
	for i := range tasks {
		tasks[i].Wave = waves[len(waves)-1-slices.Index(waves, tasks[i].Wave)]
	}
}

// lastWave is the last wave of the phase Sync; 0 when there is none.
func lastWave(tasks []Task) int {
	last, any := 0, false
	for _, t := range tasks {
		if t.Phase == Sync && (!any || t.Wave > last) {
			last, any = t.Wave, true
		}
	}
	return last
}

// arrange sorts tasks into steps by wave, and within a wave into groups: prunes in reverse kind order, then applies in
// kind order.
func arrange(tasks []Task) []Step {
	order := ranks()
	place := func(t Task) int {
		if t.Action == Prune {
			return -rank(order, t.Key.Kind)
		}
		return rank(order, t.Key.Kind)
	}
	slices.SortStableFunc(tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Phase.rank(), b.Phase.rank()), cmp.Compare(a.Wave, b.Wave), cmp.Compare(place(a), place(b)),
			cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	var steps []Step
	lastPlace := 0
	for i, t := range tasks {
		if i == 0 || t.Phase != steps[len(steps)-1].Phase || t.Wave != steps[len(steps)-1].Wave {
			steps = append(steps, Step{Phase: t.Phase, Wave: t.Wave})
			lastPlace = 0
		}
		s := &steps[len(steps)-1]
		if len(s.Groups) == 0 || place(t) != lastPlace {
			s.Groups = append(s.Groups, nil)
			lastPlace = place(t)
		}
		s.Groups[len(s.Groups)-1] = append(s.Groups[len(s.Groups)-1], t)
	}
	return steps
}

// Wave is the wave that annotations ask for: the sync wave, else Helm's hook weight, else 0. Text that is no number
// counts as 0, as in Argo CD.
func Wave(annotations map[string]string) int {
	for _, key := range []string{WaveAnnotation, HelmWeightAnnotation} {
		if text, ok := annotations[key]; ok {
			n, _ := strconv.Atoi(text)
			return n
		}
	}
	return 0
}
