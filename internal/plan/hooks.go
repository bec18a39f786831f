package plan

import (
	"slices"
	"strings"
)

// Phase is a phase of a sync (the contract's §2.2).
type Phase string

// The phases of a sync in their order, and those outside of it.
const (
	PreSync    Phase = "PreSync"
	Sync       Phase = "Sync"
	PostSync   Phase = "PostSync"
	SyncFail   Phase = "SyncFail"
	PreDelete  Phase = "PreDelete"
	PostDelete Phase = "PostDelete"
	// Skip is the phase of objects that are never applied.
	Skip Phase = "Skip"
)

func (p Phase) rank() int {
	return slices.Index([]Phase{PreSync, Sync, PostSync, SyncFail}, p)
}

// DeletePolicy says when a hook is deleted.
type DeletePolicy string

// The policies.
const (
	// BeforeHookCreation deletes the hook of an earlier sync before this one's is made; it is the default.
	BeforeHookCreation DeletePolicy = "BeforeHookCreation"
	// HookSucceeded deletes the hook when the whole sync succeeded.
	HookSucceeded DeletePolicy = "HookSucceeded"
	// HookFailed deletes the hook when the sync failed.
	HookFailed DeletePolicy = "HookFailed"
)

// Annotations of hooks.
const (
	HookAnnotation       = "argocd.argoproj.io/hook"
	HookDeleteAnnotation = "argocd.argoproj.io/hook-delete-policy"
	HelmHookAnnotation   = "helm.sh/hook"
	HelmDeleteAnnotation = "helm.sh/hook-delete-policy"
)

// IsHook tells whether annotations make an object a hook rather than a part of the application.
func IsHook(annotations map[string]string) bool {
	if _, ok := annotations[HookAnnotation]; ok {
		return true
	}
	helm, ok := annotations[HelmHookAnnotation]
	return ok && !slices.Contains(fields(helm), "crd-install")
}

// HookPhases are the phases that a hook runs in. Helm's are mapped, an install and an upgrade told apart (DESIGN.md §2.5);
// Argo CD's own annotation wins over Helm's. A hook of phases that do not exist here runs in none.
func HookPhases(annotations map[string]string, install bool) []Phase {
	if own, ok := annotations[HookAnnotation]; ok {
		var phases []Phase
		for _, name := range fields(own) {
			switch p := Phase(name); p {
			case PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete:
				if !slices.Contains(phases, p) {
					phases = append(phases, p)
				}
			}
		}
		return phases
	}
	var phases []Phase
	for _, name := range fields(annotations[HelmHookAnnotation]) {
		p, fits := helmPhase(name, install)
		if fits && !slices.Contains(phases, p) {
			phases = append(phases, p)
		}
	}
	return phases
}

func helmPhase(name string, install bool) (Phase, bool) {
	switch name {
	case "pre-install":
		return PreSync, install
	case "pre-upgrade":
		return PreSync, !install
	case "post-install":
		return PostSync, install
	case "post-upgrade":
		return PostSync, !install
	case "pre-delete":
		return PreDelete, true
	case "post-delete":
		return PostDelete, true
	}
	return "", false
}

// HookPolicies are the delete policies of a hook, Argo CD's and Helm's together.
func HookPolicies(annotations map[string]string) []DeletePolicy {
	var out []DeletePolicy
	for _, name := range append(fields(annotations[HookDeleteAnnotation]), fields(annotations[HelmDeleteAnnotation])...) {
		p, known := deletePolicy(name)
		if !known {
			continue
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return []DeletePolicy{BeforeHookCreation}
	}
	return out
}

func fields(csv string) []string {
	return strings.FieldsFunc(csv, func(r rune) bool { return r == ',' || r == ' ' })
}

// hookTasks are the tasks of the hooks that this sync runs.
func hookTasks(hooks []Desired, opts Options) []Task {
	var tasks []Task
	for i := range hooks {
		h := &hooks[i]
		for _, p := range HookPhases(h.GetAnnotations(), opts.Install) {
			if p.rank() < 0 {
				continue
			}
			tasks = append(tasks, Task{
				Action: RunHook, Key: h.Key(), Object: &h.Object, Phase: p, Wave: Wave(h.GetAnnotations()), Index: i,
			})
		}
	}
	return tasks
}

// DeletionHooks orders the hooks of a phase outside of syncs, PreDelete or PostDelete, by wave.
func DeletionHooks(hooks []Desired, phase Phase) []Step {
	var tasks []Task
	for i := range hooks {
		h := &hooks[i]
		if slices.Contains(HookPhases(h.GetAnnotations(), false), phase) {
			tasks = append(tasks, Task{Action: RunHook, Key: h.Key(), Object: &h.Object, Phase: phase, Wave: Wave(h.GetAnnotations()), Index: i})
		}
	}
	return arrange(tasks)
}
