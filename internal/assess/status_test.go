package assess

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

func clock(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC))
}

func TestTransition(t *testing.T) {
	then, now := clock(0), clock(5)
	old := v1alpha1.AppHealthStatus{Status: "Progressing", Message: "a", LastTransitionTime: &then}
	tests := []struct {
		name     string
		old, new v1alpha1.AppHealthStatus
		want     metav1.Time
	}{
		{"same", old, v1alpha1.AppHealthStatus{Status: "Progressing", Message: "b"}, then},
		{"other", old, v1alpha1.AppHealthStatus{Status: "Healthy"}, now},
		{"first", v1alpha1.AppHealthStatus{}, v1alpha1.AppHealthStatus{Status: "Healthy"}, now},
		{"without a time", v1alpha1.AppHealthStatus{Status: "Healthy"}, v1alpha1.AppHealthStatus{Status: "Healthy"}, now},
	}
	for _, test := range tests {
		got := Transition(test.old, test.new, now)
		test.new.LastTransitionTime = &test.want
		if diff := cmp.Diff(test.new, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestConditions(t *testing.T) {
	then, now := clock(0), clock(5)
	at := func(kind v1alpha1.ApplicationConditionType, message string, when *metav1.Time) v1alpha1.ApplicationCondition {
		return v1alpha1.ApplicationCondition{Type: kind, Message: message, LastTransitionTime: when}
	}
	type list = []v1alpha1.ApplicationCondition
	type types = []v1alpha1.ApplicationConditionType
	tests := []struct {
		name  string
		old   list
		types types
		found list
		want  list
	}{
		{"nothing", nil, types{"SyncError"}, nil, nil},
		{"new", nil, types{"SyncError"}, list{at("SyncError", "a", nil)}, list{at("SyncError", "a", &now)}},
		{"same", list{at("SyncError", "a", &then)}, types{"SyncError"}, list{at("SyncError", "a", nil)}, list{at("SyncError", "a", &then)}},
		{"other message", list{at("SyncError", "a", &then)}, types{"SyncError"}, list{at("SyncError", "b", nil)}, list{at("SyncError", "b", &now)}},
		{"gone", list{at("SyncError", "a", &then)}, types{"SyncError"}, nil, nil},
		{"of a type that was not looked at", list{at("DeletionError", "a", &then)}, types{"SyncError"}, nil, list{at("DeletionError", "a", &then)}},
		{"found of a type that was not looked at", list{at("SyncError", "a", &then)}, nil, list{at("SyncError", "a", nil)}, list{at("SyncError", "a", &then)}},
		{"several of one type", list{at("SharedResourceWarning", "b", &then)}, types{"SharedResourceWarning"},
			list{at("SharedResourceWarning", "b", nil), at("SharedResourceWarning", "a", nil), at("SharedResourceWarning", "a", nil)},
			list{at("SharedResourceWarning", "a", &now), at("SharedResourceWarning", "b", &then)}},
		{"sorted", list{at("UnknownError", "z", &then)}, types{"ComparisonError", "SyncError"},
			list{at("SyncError", "a", nil), at("ComparisonError", "b", nil)},
			list{at("ComparisonError", "b", &now), at("SyncError", "a", &now), at("UnknownError", "z", &then)}},
		{"old without a time", list{at("DeletionError", "a", nil)}, nil, nil, list{at("DeletionError", "a", &now)}},
	}
	for _, test := range tests {
		got := Conditions(test.old, Evaluated{Types: test.types, Conditions: test.found}, now)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestHistory(t *testing.T) {
	entry := func(id int64, revision string) v1alpha1.RevisionHistory {
		return v1alpha1.RevisionHistory{ID: id, Revision: revision, DeployedAt: clock(int(id))}
	}
	added := v1alpha1.RevisionHistory{ID: 99, Revision: "new", DeployedAt: clock(9)}
	want := func(id int64) v1alpha1.RevisionHistory {
		return v1alpha1.RevisionHistory{ID: id, Revision: "new", DeployedAt: clock(9)}
	}
	full := make([]v1alpha1.RevisionHistory, 0, 10)
	for id := range int64(10) {
		full = append(full, entry(id+4, "r"))
	}
	type list = []v1alpha1.RevisionHistory
	tests := []struct {
		name  string
		old   list
		limit *int64
		want  list
	}{
		{"first", nil, nil, list{want(0)}},
		{"next", list{entry(0, "a"), entry(1, "b")}, nil, list{entry(0, "a"), entry(1, "b"), want(2)}},
		{"after a gap", list{entry(7, "a")}, nil, list{entry(7, "a"), want(8)}},
		{"full by default", full, nil, append(append(list{}, full[1:]...), want(14))},
		{"limit 2", list{entry(0, "a"), entry(1, "b")}, new(int64(2)), list{entry(1, "b"), want(2)}},
		{"limit lowered", full, new(int64(1)), list{want(14)}},
		{"none", list{entry(0, "a")}, new(int64(0)), nil},
		{"below none", list{entry(0, "a")}, new(int64(-1)), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := append(list{}, test.old...)
			if diff := cmp.Diff(test.want, History(test.old, added, test.limit)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, append(list{}, test.old...)); diff != "" {
				t.Errorf("old was changed:\n%s", diff)
			}
		})
	}
}
