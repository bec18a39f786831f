package engine

import (
	"encoding/json"
	"fmt"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// PinAnnotation on an Application says that a person rolled it back although it is synced automatically: it holds the digest
// of the rendering that was rolled back from. While the source renders to just that, nothing is synced by itself; as soon as
// it renders to something else, or the annotation is removed, automated sync goes on (DESIGN.md §2.5).
const PinAnnotation = "lockstep.dev/pinned"

// pin is what the annotation becomes after an operation: the digest to pin, or "" to leave it.
func pin(l, done *look, r *running) string {
	if done == l || r.op.InitiatedBy.Automated || r.selective || r.op.Sync.DryRun || !automated(l.app).Enabled || !l.compared() ||
		done.rendering.digest == l.rendering.digest {
		return ""
	}
	return l.rendering.digest
}

// pinned says why automated sync rests after a rollback; empty when it does not.
func pinned(l *look) string {
	from := l.app.Annotations[PinAnnotation]
	if from == "" || from != l.rendering.digest {
		return ""
	}
	return fmt.Sprintf("was rolled back and stays so until the source renders to something else; to sync to it again, remove the annotation %s",
		PinAnnotation)
}

// pinChange is what a status write does to the annotation; absent means nothing.
func pinChange(app *v1alpha1.Application, l *look, out outcome) map[string]any {
	switch from := app.Annotations[PinAnnotation]; {
	case out.pin != "" && out.pin != from:
		return map[string]any{PinAnnotation: out.pin}
	case from != "" && l.compared() && out.pin == "" && from != l.rendering.digest:
		return map[string]any{PinAnnotation: nil}
	}
	return nil
}

// annotate adds annotations to a merge patch, which may be nil.
func annotate(patch []byte, annotations map[string]any) ([]byte, error) {
	if len(annotations) == 0 {
		return patch, nil
	}
	fields := map[string]any{}
	if patch != nil {
		if err := json.Unmarshal(patch, &fields); err != nil {
			return nil, err
		}
	}
	meta, _ := fields["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		fields["metadata"] = meta
	}
	all, _ := meta["annotations"].(map[string]any)
	if all == nil {
		all = map[string]any{}
		meta["annotations"] = all
	}
	for k, v := range annotations {
		all[k] = v
	}
	return json.Marshal(fields)
}
