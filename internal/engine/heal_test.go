package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/compare"
)

// Putting the same object back again and again pauses longer each time, also in a process that is started anew each time, and
// starts again after a time of peace.
func TestHealsDue(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	items := []item{itemForTest("a", compare.Different)}
	note := ""
	var pauses []time.Duration
	for n := range 8 {
		list, wait, next := parseHeals(note).due(items, now)
		if len(list) != 1 || list[0].Name != "a" || wait != 0 || next.most() != int64(n+1) {
			t.Fatalf("after %v: %v, wait %s, %d times", pauses, list, wait, next.most())
		}
		note = next.String()
		list, wait, next = parseHeals(note).due(items, now)
		if len(list) != 0 || wait == 0 || next.String() != note {
			t.Fatalf("at once again: %v, wait %s, %s", list, wait, next)
		}
		pauses = append(pauses, wait)
		now = now.Add(wait)
	}
	want := []time.Duration{2 * time.Second, 6 * time.Second, 18 * time.Second, 54 * time.Second, 162 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if d := cmp.Diff(want, pauses); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	now = now.Add(healForget + time.Second)
	list, _, next := parseHeals(note).due(items, now)
	if len(list) != 1 || next.most() != 1 {
		t.Errorf("after a time of peace: %v, %d times", list, next.most())
	}
}

func TestHealsLeaveOut(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	held := itemForTest("held", compare.Different)
	held.holder = "another"
	broken := itemForTest("broken", compare.Missing)
	broken.desired.problem = errNotCompared
	items := []item{itemForTest("fine", compare.Equal), held, broken, itemForTest("gone", compare.Missing)}
	list, wait, _ := parseHeals("").due(items, now)
	if len(list) != 1 || list[0].Name != "gone" || wait != 0 {
		t.Errorf("got %v, wait %s", list, wait)
	}
}

// What somebody else wrote into the note is left out; the note stays small and forgets.
func TestHealsNote(t *testing.T) {
	if h := parseHeals("x a.b.c k.0.z k.-1.z .. 1.2.3.4 good.2.0"); len(h) != 1 || h["good"].count != 2 {
		t.Errorf("read %v", h)
	}
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	items := make([]item, 1000)
	for i := range items {
		items[i] = itemForTest(fmt.Sprintf("object-with-a-long-name-%d", i), compare.Missing)
	}
	_, _, next := heals{}.due(items, now)
	if n := len(next.String()); n > 25*len(items) {
		t.Errorf("%d bytes for %d objects", n, len(items))
	}
	if _, _, later := next.due(nil, now.Add(healForget+time.Second)); len(later) != 0 {
		t.Errorf("%d objects are still known", len(later))
	}
}
