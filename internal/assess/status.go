package assess

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// Transition gives the new health the time at which its status began: that of the old one while the status is the same,
// else now.
func Transition(old, health v1alpha1.AppHealthStatus, now metav1.Time) v1alpha1.AppHealthStatus {
	health.LastTransitionTime = &now
	if old.Status == health.Status && old.LastTransitionTime != nil {
		health.LastTransitionTime = old.LastTransitionTime
	}
	return health
}

// Evaluated are the conditions that one evaluation found, and the types it looked at.
type Evaluated struct {
	Types      []v1alpha1.ApplicationConditionType
	Conditions []v1alpha1.ApplicationCondition
}

// Conditions lays what was evaluated over old: conditions of a type that was looked at and not found are gone, others stay.
// One with the same type and message keeps its time; a new one gets now. Sorted by type, then message; no doubles.
func Conditions(old []v1alpha1.ApplicationCondition, found Evaluated, now metav1.Time) []v1alpha1.ApplicationCondition {
	var result []v1alpha1.ApplicationCondition
	add := func(condition v1alpha1.ApplicationCondition) {
		if condition.LastTransitionTime == nil {
			condition.LastTransitionTime = &now
		}
		if find(result, condition) < 0 {
			result = append(result, condition)
		}
	}
	for _, condition := range found.Conditions {
		if i := find(old, condition); i >= 0 {
			condition = old[i]
		}
		add(condition)
	}
	for _, condition := range old {
		if !slices.Contains(found.Types, condition.Type) {
			add(condition)
		}
	}
	slices.SortFunc(result, func(a, b v1alpha1.ApplicationCondition) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Message, b.Message))
	})
	return result
}

// find is the place of a condition of the same type and message; -1 when there is none.
func find(conditions []v1alpha1.ApplicationCondition, like v1alpha1.ApplicationCondition) int {
	return slices.IndexFunc(conditions, func(c v1alpha1.ApplicationCondition) bool {
		return c.Type == like.Type && c.Message == like.Message
	})
}

// DefaultHistoryLimit is the length of the history when the application names none.
const DefaultHistoryLimit = 10

// History appends a deployment and keeps the newest up to a limit; nil means DefaultHistoryLimit, 0 and less keep none. The
// entry gets the next free id. Oldest first; old is not changed.
func History(old []v1alpha1.RevisionHistory, entry v1alpha1.RevisionHistory, limit *int64) []v1alpha1.RevisionHistory {
	entry.ID = 0
	for _, past := range old {
		entry.ID = max(entry.ID, past.ID+1)
	}
	keep := int64(DefaultHistoryLimit)
	if limit != nil {
		keep = max(*limit, 0)
	}
	result := append(slices.Clone(old), entry)
	if drop := int64(len(result)) - keep; drop > 0 {
		result = result[drop:]
	}
	if len(result) == 0 {
		return nil
	}
	return slices.Clip(result)
}
