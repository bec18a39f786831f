package plan

import "slices"

// Delete orders the deletion of what an application owns: the reverse of how it was made, wave by wave. Options of a prune
// do not count here; who must stay has a Reason.
func Delete(extra []Extra) ([]Step, []Kept) {
	var tasks []Task
	var kept []Kept
	for _, e := range extra {
		if e.Reason != "" {
			kept = append(kept, Kept{Key: e.Key, Reason: e.Reason})
			continue
		}
		tasks = append(tasks, Task{Action: Prune, Key: e.Key, Phase: Sync, Wave: Wave(e.Annotations)})
	}
	mirror(tasks)
	return arrange(tasks), kept
}

// RunsIn tells whether annotations make an object a hook of a phase.
func RunsIn(annotations map[string]string, phase Phase) bool {
	return IsHook(annotations) && slices.Contains(HookPhases(annotations, true), phase)
}
