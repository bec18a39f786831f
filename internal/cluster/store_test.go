package cluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// shelf is a store with what it notified.
type shelf struct {
	*store
	wanted map[string]bool
	notes  []string
}

func newShelf(wanted ...string) *shelf {
	s := &shelf{wanted: map[string]bool{}}
	for _, w := range wanted {
		s.wanted[w] = true
	}
	s.store = newStore(readTest, func(k manifest.Key) bool { return s.wanted[k.Name] }, func(k manifest.Key, old, now Live) {
		s.notes = append(s.notes, fmt.Sprintf("%s %s>%s", k.Name, old.ResourceVersion, now.ResourceVersion))
	})
	return s
}

// readTest takes the owner from an annotation.
func readTest(u *unstructured.Unstructured) Live {
	l := Identity(u)
	l.Tracking = u.GetAnnotations()["tracking"]
	l.Owner = l.Tracking
	l.Entry = u.GetAnnotations()["entry"]
	return l
}

func object(name, version string, annotations ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetName(name)
	u.SetNamespace("web")
	u.SetResourceVersion(version)
	u.SetUID(types.UID("uid-" + name))
	a := map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		a[annotations[i]] = annotations[i+1]
	}
	u.SetAnnotations(a)
	return u
}

func keyOf(name string) manifest.Key {
	return manifest.Key{Kind: "ConfigMap", Namespace: "web", Name: name}
}

// state is "version" of what is kept, "unread" or "absent".
func (s *shelf) state(name string) string {
	l, found, unread := s.get(keyOf(name))
	switch {
	case found:
		return l.ResourceVersion
	case unread:
		return "unread"
	}
	return "absent"
}

func (s *shelf) check(t *testing.T, name, want string) {
	t.Helper()
	if got := s.state(name); got != want {
		t.Errorf("%s is %s, want %s", name, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeepsWhatIsWantedOrTracked(t *testing.T) {
	s := newShelf("wanted")
	must(t, s.Replace([]any{object("wanted", "1"), object("tracked", "2", "tracking", "app"), object("other", "3")}, "3"))
	s.check(t, "wanted", "1")
	s.check(t, "tracked", "2")
	s.check(t, "other", "unread")
	s.check(t, "missing", "absent")
	if d := cmp.Diff([]string{"wanted >1", "tracked >2"}, s.notes); d != "" {
		t.Errorf("notes (-want +got)\n%s", d)
	}
	select {
	case <-s.ready():
	default:
		t.Error("not synced after the first list")
	}
	must(t, s.Update(object("other", "4", "tracking", "app")))
	s.check(t, "other", "4")
	must(t, s.Update(object("tracked", "5")))
	s.check(t, "tracked", "5") // the loss of a mark is told, not forgotten
	must(t, s.Delete(object("wanted", "6")))
	s.check(t, "wanted", "absent")
}

func TestNotifiesRelevantChangesOnly(t *testing.T) {
	s := newShelf("a")
	must(t, s.Add(object("a", "1", "entry", "x")))
	must(t, s.Update(object("a", "2", "entry", "x", "note", "nobody's business")))
	s.check(t, "a", "2")
	must(t, s.Update(object("a", "3", "entry", "y")))
	must(t, s.Delete(object("a", "4")))
	must(t, s.Delete(object("a", "4")))
	must(t, s.Delete(object("never", "5")))
	if d := cmp.Diff([]string{"a >1", "a 2>3", "a 3>"}, s.notes); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestOldNewsIsIgnored(t *testing.T) {
	s := newShelf("a")
	must(t, s.Replace(nil, "10"))
	s.observe(readTest(object("a", "12", "entry", "ours")))
	must(t, s.Add(object("a", "11", "entry", "before")))
	s.check(t, "a", "12")
	must(t, s.Update(object("a", "12", "entry", "ours")))
	if d := cmp.Diff([]string{"a >12"}, s.notes); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The watch tells of a creation and a deletion before the answer to the request that created is taken in.
func TestAnswerBehindADeletion(t *testing.T) {
	s := newShelf("a")
	must(t, s.Replace(nil, "10"))
	must(t, s.Add(object("a", "11")))
	must(t, s.Delete(object("a", "12")))
	s.observe(readTest(object("a", "11")))
	s.check(t, "a", "absent")
	s.observe(readTest(object("a", "13")))
	s.check(t, "a", "13")
}

// An object was replaced by us: the answer is taken in before the watch tells of the end of the old one.
func TestDeletionBehindAnAnswer(t *testing.T) {
	s := newShelf("a")
	must(t, s.Replace([]any{object("a", "5")}, "10"))
	again := object("a", "12")
	again.SetUID("another")
	s.observe(readTest(again))
	must(t, s.Delete(object("a", "11")))
	s.check(t, "a", "12")
	must(t, s.Delete(object("a", "13")))
	s.check(t, "a", "absent")
}

func TestListAfterALostWatch(t *testing.T) {
	s := newShelf("stays", "goes", "new", "ours")
	must(t, s.Replace([]any{object("stays", "1"), object("goes", "2"), object("other", "3"), object("other-goes", "4")}, "10"))
	s.observe(readTest(object("ours", "25"))) // newer than the list that follows
	s.notes = nil
	must(t, s.Replace([]any{object("stays", "1"), object("new", "15"), object("other", "3")}, "20"))
	for name, want := range map[string]string{"stays": "1", "goes": "absent", "new": "15", "ours": "25", "other": "unread", "other-goes": "absent"} {
		s.check(t, name, want)
	}
	if d := cmp.Diff([]string{"new >15", "goes 2>"}, s.notes); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The data of the API server was put back: versions are smaller than before, and the list is right.
func TestListOfARestoredServer(t *testing.T) {
	s := newShelf("a", "b")
	must(t, s.Replace([]any{object("a", "100", "entry", "x"), object("b", "101")}, "110"))
	must(t, s.Replace([]any{object("a", "50", "entry", "before")}, "60"))
	s.check(t, "a", "50")
	s.check(t, "b", "absent")
	must(t, s.Update(object("a", "61", "entry", "x")))
	s.check(t, "a", "61")
}

func TestOwned(t *testing.T) {
	s := newShelf()
	owned := func(owner string) int { return len(s.of(owner, nil)) }
	must(t, s.Add(object("a", "1", "tracking", "one")))
	must(t, s.Add(object("b", "2", "tracking", "one")))
	if owned("one") != 2 || owned("two") != 0 || owned("") != 0 {
		t.Errorf("one %d, two %d, nobody %d", owned("one"), owned("two"), owned(""))
	}
	must(t, s.Update(object("a", "3", "tracking", "two")))
	must(t, s.Delete(object("b", "4")))
	if owned("one") != 0 || owned("two") != 1 || len(s.owned) != 1 {
		t.Errorf("one %d, two %d, owners %d", owned("one"), owned("two"), len(s.owned))
	}
	must(t, s.Update(object("a", "5")))
	if owned("two") != 0 || len(s.owned) != 0 {
		t.Errorf("after the mark went: %d, owners %d", owned("two"), len(s.owned))
	}
}

func TestEventsThatHoldNoObject(t *testing.T) {
	s := newShelf()
	for _, err := range []error{s.Add("x"), s.Update(nil), s.Delete(1), s.Replace([]any{"x"}, "1")} {
		if err == nil {
			t.Error("no error")
		}
	}
}

func TestIdentity(t *testing.T) {
	u := object("a", "7", "argocd.argoproj.io/sync-options", "Prune=false", "argocd.argoproj.io/hook", "PreSync", "helm.sh/resource-policy", "keep",
		"lockstep.dev/operation", "x", "example.com/secret", "no")
	yes := true
	u.SetCreationTimestamp(metav1.Unix(1764720000, 0))
	if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "y", "controller": yes}}, "metadata", "ownerReferences"); err != nil {
		t.Fatal(err)
	}
	got := Identity(u)
	want := Live{Key: keyOf("a"), Version: "v1", UID: "uid-a", ResourceVersion: "7", Created: 1764720000, Controlled: true, Controller: Controller{APIVersion: "v1", Kind: "X", Name: "x", UID: "y"}, Steering: map[string]string{
		"argocd.argoproj.io/sync-options": "Prune=false", "argocd.argoproj.io/hook": "PreSync", "helm.sh/resource-policy": "keep", "lockstep.dev/operation": "x",
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if young := Identity(object("b", "1")).Created; young != 0 {
		t.Errorf("an object that does not say when it was made is from %d", young)
	}
	if Identity(object("b", "1")).Steering != nil {
		t.Error("steering of an object without such annotations is not nil")
	}
}

func TestRelevant(t *testing.T) {
	base := Live{UID: "u", ResourceVersion: "1", Entry: "e", Steering: map[string]string{"a": "1"}}
	changes := map[string]func(*Live){
		"uid": func(l *Live) { l.UID = "v" }, "entry": func(l *Live) { l.Entry = "f" }, "content": func(l *Live) { l.Content = "c" },
		"tracking": func(l *Live) { l.Tracking = "t" }, "owner": func(l *Live) { l.Owner = "o" }, "deleting": func(l *Live) { l.Deleting = true },
		"has health": func(l *Live) { l.HasHealth = true }, "health": func(l *Live) { l.Health.Status = "Healthy" },
		"message": func(l *Live) { l.Health.Message = "m" }, "steering": func(l *Live) { l.Steering = map[string]string{"a": "2"} },
		"urls": func(l *Live) { l.URLs = []string{"u"} }, "images": func(l *Live) { l.Images = []string{"i"} },
	}
	for name, change := range changes {
		now := base
		change(&now)
		if !now.relevant(base) {
			t.Errorf("a change of %s is not relevant", name)
		}
	}
	now := base
	now.ResourceVersion = "2"
	if now.relevant(base) {
		t.Error("a new version alone is relevant")
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"2", "1", true}, {"1", "2", false}, {"1", "1", false}, {"10", "9", true}, {"", "1", true}, {"1", "", true}, {"x", "y", true}} {
		if got := newer(c.a, c.b); got != c.want {
			t.Errorf("newer(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

// A deletion that we asked for is known at once, by whichever version of the object it was asked, and stays known until the
// reflector tells of something newer.
func TestDeletionOfOursIsKnownAtOnce(t *testing.T) {
	deleting := func(s *shelf) bool { l, _, _ := s.get(keyOf("a")); return l.Deleting }
	s := newShelf("a")
	must(t, s.Add(object("a", "5")))
	s.ends(keyOf("a"), "another", "7")
	s.ends(keyOf("unknown"), "another", "7")
	if deleting(s) {
		t.Error("an object of another name or uid was deleted, and this one counts as being deleted")
	}
	s.ends(keyOf("a"), "uid-a", "7")
	must(t, s.Update(object("a", "6"))) // what the reflector brings late is older than what was deleted
	if !deleting(s) {
		t.Error("the deletion is not known")
	}
	must(t, s.Delete(object("a", "8")))
	s.check(t, "a", "absent")
	must(t, s.Add(object("a", "9")))
	if deleting(s) {
		t.Error("an object made since counts as being deleted")
	}
}
