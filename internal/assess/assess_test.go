package assess

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
)

func item(name string, status v1alpha1.HealthStatusCode, message string) Item {
	return Item{
		Key: manifest.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name}, Live: true, HasHealth: true,
		Health: v1alpha1.HealthStatus{Status: status, Message: message}, Sync: v1alpha1.SyncSynced,
	}
}

func with(i Item, change func(*Item)) Item {
	change(&i)
	return i
}

func TestHealth(t *testing.T) {
	var (
		good    = item("good", v1alpha1.HealthHealthy, "")
		moving  = item("moving", v1alpha1.HealthProgressing, "the rollout waits for updated pods")
		paused  = item("paused", v1alpha1.HealthSuspended, "it is paused")
		broken  = item("broken", v1alpha1.HealthDegraded, "the rollout exceeded its progress deadline")
		broken2 = item("broken2", v1alpha1.HealthDegraded, "other reason")
		lost    = item("lost", v1alpha1.HealthUnknown, "its node does not report")
		absent  = with(item("absent", "", ""), func(i *Item) { i.Live, i.HasHealth = false, false })
		plain   = with(item("plain", "", ""), func(i *Item) { i.Key.Kind, i.Key.Group, i.HasHealth = "ConfigMap", "", false })
		child   = func(status v1alpha1.HealthStatusCode) Item {
			return with(item("child", status, "why"), func(i *Item) { i.Key.Group, i.Key.Kind = "argoproj.io", "Application" })
		}
	)
	const (
		sentence = "Caused by Deployment.apps/shop/broken: the rollout exceeded its progress deadline"
		nothing  = "None of its objects is in the cluster"
	)
	tests := []struct {
		name    string
		items   []Item
		status  v1alpha1.HealthStatusCode
		message string
	}{
		{"nothing is declared", nil, "Healthy", ""},
		{"all well", []Item{good, plain}, "Healthy", ""},
		{"suspended", []Item{good, paused}, "Suspended", "Caused by Deployment.apps/shop/paused: it is paused"},
		{"progressing is worse than suspended", []Item{paused, moving}, "Progressing", "Caused by Deployment.apps/shop/moving: the rollout waits for updated pods"},
		{"degraded is worse than progressing", []Item{broken, moving, good}, "Degraded", sentence},
		{"unknown is worst", []Item{broken, lost}, "Unknown", "Caused by Deployment.apps/shop/lost: its node does not report"},
		{"two", []Item{broken2, broken}, "Degraded", sentence + "; also Deployment.apps/shop/broken2"},
		{"three", []Item{broken2, broken, with(broken, func(i *Item) { i.Key.Name = "c" })}, "Degraded", sentence + "; also Deployment.apps/shop/broken2 and Deployment.apps/shop/c"},
		{"many", []Item{
			broken, broken2, with(broken, func(i *Item) { i.Key.Name = "c" }), with(broken, func(i *Item) { i.Key.Name = "d" }), with(broken, func(i *Item) { i.Key.Name = "e" }),
		}, "Degraded", sentence + "; also Deployment.apps/shop/broken2, Deployment.apps/shop/c and others"},
		{"no reason", []Item{item("x", v1alpha1.HealthDegraded, "")}, "Degraded", "Caused by Deployment.apps/shop/x"},
		{"one is missing", []Item{good, absent}, "Healthy", ""},
		{"all are missing", []Item{absent, absent}, "Missing", nothing},
		{"only a hook is there", []Item{absent, with(good, func(i *Item) { i.Hook = true })}, "Missing", nothing},
		{"only hooks", []Item{with(broken, func(i *Item) { i.Hook = true })}, "Healthy", ""},
		{"hook", []Item{good, with(broken, func(i *Item) { i.Hook = true })}, "Healthy", ""},
		{"skipped", []Item{good, with(broken, func(i *Item) { i.Skip = true })}, "Healthy", ""},
		{"left out", []Item{good, with(broken, func(i *Item) { i.IgnoreHealth = true })}, "Healthy", ""},
		{"left out, but there", []Item{absent, with(broken, func(i *Item) { i.IgnoreHealth = true })}, "Healthy", ""},
		{"itself", []Item{good, with(child("Degraded"), func(i *Item) { i.Self = true })}, "Healthy", ""},
		{"child is ill", []Item{good, child("Degraded")}, "Degraded", "Caused by Application.argoproj.io/shop/child: why"},
		{"child is on its way", []Item{good, child("Progressing")}, "Progressing", "Caused by Application.argoproj.io/shop/child: why"},
		{"child is missing", []Item{good, child("Missing")}, "Healthy", ""},
		{"child is unknown", []Item{good, child("Unknown")}, "Healthy", ""},
		{"not a code", []Item{item("x", "Odd", "")}, "Odd", "Caused by Deployment.apps/shop/x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := v1alpha1.AppHealthStatus{Status: test.status, Message: test.message}
			if diff := cmp.Diff(want, Health(test.items)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// The order in which objects are known must not change the words.
			slices.Reverse(test.items)
			if diff := cmp.Diff(want, Health(test.items)); diff != "" {
				t.Errorf("reversed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSync(t *testing.T) {
	synced := item("a", "", "")
	differs := with(synced, func(i *Item) { i.Sync = v1alpha1.SyncOutOfSync })
	undecided := with(synced, func(i *Item) { i.Sync = v1alpha1.SyncUnknown })
	none := with(synced, func(i *Item) { i.Sync = "" })
	hook := with(differs, func(i *Item) { i.Hook = true })
	skipped := with(differs, func(i *Item) { i.Skip = true })
	tests := []struct {
		name  string
		items []Item
		want  v1alpha1.SyncStatusCode
	}{
		{"nothing", nil, "Synced"},
		{"synced", []Item{synced, none, hook, skipped}, "Synced"},
		{"one differs", []Item{synced, differs}, "OutOfSync"},
		{"one is unknown", []Item{undecided, synced}, "Unknown"},
		{"one differs and one is unknown", []Item{undecided, differs}, "OutOfSync"},
	}
	for _, test := range tests {
		if got := Sync(test.items); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
