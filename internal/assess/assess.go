// Package assess owns what an application's status says as a whole, worked out of what is known of its objects: health,
// sync status, summary, conditions and history. Pure functions; time arrives as an argument.
//
// It imports api and manifest, and no other link: the engine hands the values over.
package assess

import (
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// Item is what the assessment of an application needs to know of one of its objects: declared, live, or both.
type Item struct {
	Key manifest.Key
	// Live tells that the object is in the cluster.
	Live bool
	// Hook tells that the object belongs to a phase of a sync rather than to the application; it has neither sync status
	// nor health.
	Hook bool
	// Skip tells that the object is never applied (a hook of phase Skip, or of a phase that is not supported).
	Skip bool
	// IgnoreHealth tells that the object asks to be left out of the health.
	IgnoreHealth bool
	// Self tells that the object is the application itself.
	Self bool
	// HasHealth tells that Health holds something: kinds without a rule have none.
	HasHealth bool
	Health    v1alpha1.HealthStatus
	// Sync is how the object compares; empty when it has no part in the sync status.
	Sync v1alpha1.SyncStatusCode
}

// maxNamed is the number of objects a message names; the rest are "others", since a count would change with every pod.
const maxNamed = 3

// Health is the worst health of the application's own objects, and which of them it comes from. Objects that are not in
// the cluster do not count, as the sync status tells of them, unless none is there: then the application is Missing.
// LastTransitionTime is set by Transition.
func Health(items []Item) v1alpha1.AppHealthStatus {
	worst := v1alpha1.HealthHealthy
	var causes []Item
	expected, present := false, false
	for _, item := range items {
		if item.Hook || item.Skip {
			continue
		}
		expected = true
		present = present || item.Live
		if !counts(item) {
			continue
		}
		switch status := item.Health.Status; {
		case severity(status) > severity(worst):
			worst, causes = status, []Item{item}
		case status == worst && worst != v1alpha1.HealthHealthy:
			causes = append(causes, item)
		}
	}
	if expected && !present {
		return v1alpha1.AppHealthStatus{Status: v1alpha1.HealthMissing, Message: "None of its objects is in the cluster"}
	}
	return v1alpha1.AppHealthStatus{Status: worst, Message: causedBy(causes)}
}

// counts tells whether the health of an object is part of the application's.
func counts(item Item) bool {
	if !item.Live || item.IgnoreHealth || item.Self || !item.HasHealth {
		return false
	}
	// A child application that is not known to be ill is its own matter.
	child := item.Key.Group == v1alpha1.Group && item.Key.Kind == v1alpha1.ApplicationKind
	return !child || (item.Health.Status != v1alpha1.HealthMissing && item.Health.Status != v1alpha1.HealthUnknown)
}

// severity orders the codes; what is not a code is as bad as Unknown.
func severity(status v1alpha1.HealthStatusCode) int {
	switch status {
	case v1alpha1.HealthHealthy:
		return 0
	case v1alpha1.HealthSuspended:
		return 1
	case v1alpha1.HealthProgressing:
		return 2
	case v1alpha1.HealthMissing:
		return 3
	case v1alpha1.HealthDegraded:
		return 4
	}
	return 5
}

// causedBy names the objects in the order of their keys: the first with its reason, and the next ones.
func causedBy(causes []Item) string {
	if len(causes) == 0 {
		return ""
	}
	sortItems(causes)
	var message strings.Builder
	message.WriteString("Caused by " + causes[0].Key.String())
	if reason := causes[0].Health.Message; reason != "" {
		message.WriteString(": " + reason)
	}
	if len(causes) == 1 {
		return message.String()
	}
	rest := causes[1:]
	names := make([]string, 0, maxNamed)
	for i, item := range rest {
		if i == maxNamed-1 {
			names = append(names, "others")
			break
		}
		names = append(names, item.Key.String())
	}
	message.WriteString("; also " + listed(names))
	return message.String()
}

// listed is a, b and c.
func listed(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Sync is OutOfSync when an object is, else Unknown when one could not be compared, else Synced.
func Sync(items []Item) v1alpha1.SyncStatusCode {
	code := v1alpha1.SyncSynced
	for _, item := range items {
		if item.Hook || item.Skip {
			continue
		}
		switch item.Sync {
		case v1alpha1.SyncOutOfSync:
			return v1alpha1.SyncOutOfSync
		case v1alpha1.SyncUnknown:
			code = v1alpha1.SyncUnknown
		}
	}
	return code
}
