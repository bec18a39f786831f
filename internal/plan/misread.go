package plan

import (
	"fmt"
	"slices"
	"strconv"
)

// Misread says which annotations that steer a sync have values that mean nothing, each with what counts instead. An object
// is never held back by one.
func Misread(annotations map[string]string) []string {
	var out []string
	for _, key := range []string{WaveAnnotation, HelmWeightAnnotation} {
		text, ok := annotations[key]
		if !ok {
			continue
		}
		if _, err := strconv.Atoi(text); err != nil {
			out = append(out, fmt.Sprintf("%s: %q is no whole number; 0 is used", key, text))
		}
		break // the wave hides the weight
	}
	for _, name := range fields(annotations[HookAnnotation]) {
		known := []Phase{PreSync, Sync, PostSync, SyncFail, Skip, PreDelete, PostDelete}
		if !slices.Contains(known, Phase(name)) {
			out = append(out, fmt.Sprintf("%s: %q is no phase; it runs in none for it", HookAnnotation, name))
		}
	}
	for _, key := range []string{HookDeleteAnnotation, HelmDeleteAnnotation} {
		for _, name := range fields(annotations[key]) {
			if _, known := deletePolicy(name); !known {
				out = append(out, fmt.Sprintf("%s: %q is no policy; it has no effect", key, name))
			}
		}
	}
	return out
}

// deletePolicy reads Argo CD's and Helm's names of a policy.
func deletePolicy(name string) (DeletePolicy, bool) {
	switch name {
	case "BeforeHookCreation", "before-hook-creation":
		return BeforeHookCreation, true
	case "HookSucceeded", "hook-succeeded":
		return HookSucceeded, true
	case "HookFailed", "hook-failed":
		return HookFailed, true
	}
	return "", false
}
