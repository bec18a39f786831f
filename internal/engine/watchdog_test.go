package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

func newDog() (*watchdog, *bytes.Buffer) {
	said := &bytes.Buffer{}
	return &watchdog{
		log: slog.New(slog.NewTextHandler(said, nil)), away: map[string]bool{}, metrics: NewMetrics(prometheus.NewRegistry()),
	}, said
}

func TestWatchdogOfTheQueue(t *testing.T) {
	dog, said := newDog()
	late := queue.State{Waiting: 3, Active: 2, Oldest: 61 * time.Second, OldestKey: "ns/late", Longest: time.Hour, LongestKey: "ns/stuck"}
	dog.queue(queue.State{Waiting: 3, Oldest: 59 * time.Second, OldestKey: "ns/late"})
	if said.Len() > 0 {
		t.Error(said)
	}
	dog.queue(late)
	dog.queue(late)
	dog.queue(queue.State{})
	for text, times := range map[string]int{"application=ns/late": 1, "longest=ns/stuck": 1, "any more": 1} {
		if n := strings.Count(said.String(), text); n != times {
			t.Errorf("%s is said %d times in %s", text, n, said)
		}
	}
	if n := testutil.ToFloat64(dog.metrics.overdue); n != 1 {
		t.Errorf("counted %v", n)
	}
}

func TestWatchdogOfRepositories(t *testing.T) {
	now := time.Now()
	r := newRepos(&Sources{}, time.Minute, func([]string) {}, slog.New(slog.DiscardHandler))
	used := map[string][]subscription{"ns/app": {{source: v1alpha1.ApplicationSource{RepoURL: "x"}}}}
	r.byKey = map[string]*repo{
		"fine":   {key: "fine", reached: now.Add(-4 * time.Minute), subs: used},
		"away":   {key: "away", reached: now.Add(-6 * time.Minute), err: errors.New("is not there"), subs: used},
		"lost":   {key: "lost", reached: now.Add(-6 * time.Minute), subs: used},
		"unused": {key: "unused", reached: now.Add(-time.Hour)},
	}
	dog, said := newDog()
	dog.repositories(r.unreached(now))
	dog.repositories(r.unreached(now))
	for text, times := range map[string]int{"repository=away": 1, "is not there": 1, "repository=lost": 1, "fine": 0, "unused": 0} {
		if n := strings.Count(said.String(), text); n != times {
			t.Errorf("%s is said %d times in %s", text, n, said)
		}
	}
	if n := testutil.ToFloat64(dog.metrics.unreached); n != 2 {
		t.Errorf("the metric says %v", n)
	}
	// A repository that fails is asked again anyway; of one that should have been asked, the look was lost.
	if r.byKey["away"].asked || !r.byKey["lost"].asked {
		t.Error("the lost look is not asked for anew")
	}
	r.byKey["away"].reached, r.byKey["lost"].reached = now, now
	dog.repositories(r.unreached(now))
	if n := strings.Count(said.String(), "reached again"); n != 2 {
		t.Errorf("said %d times that one is reached again: %s", n, said)
	}
}
