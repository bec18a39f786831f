package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/queue"
)

// placed reads the lane from a key, cluster/project/name, and raises names that begin with "hand".
func placed(key string, p queue.Priority) (queue.Lane, queue.Priority) {
	parts := strings.Split(key, "/")
	if strings.HasPrefix(parts[2], "hand") {
		p = queue.People
	}
	return queue.Lane{Cluster: parts[0], Project: parts[1]}, p
}

// fill adds n keys of a lane.
func fill(q *queue.Queue, lane string, n int, p queue.Priority) {
	for i := range n {
		q.Add(fmt.Sprintf("%s/%d", lane, i), p)
	}
}

func TestProjectsTakeTurns(t *testing.T) {
	q := queue.New(queue.Options{Place: placed})
	fill(q, "one/large", 5000, queue.Commits)
	fill(q, "one/small", 2, queue.Commits)
	var got []string
	for range 5 {
		key := take(t, q)
		got = append(got, key)
		q.Done(key)
	}
	want := []string{"one/large/0", "one/small/0", "one/large/1", "one/small/1", "one/large/2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestClustersTakeTurnsBeforeProjects(t *testing.T) {
	q := queue.New(queue.Options{Place: placed})
	for _, project := range []string{"a", "b", "c"} {
		fill(q, "many/"+project, 10, queue.Drift)
	}
	fill(q, "few/a", 3, queue.Drift)
	var got []string
	for range 6 {
		key := take(t, q)
		got = append(got, key)
		q.Done(key)
	}
	// Three projects of one cluster count as much as the one of the other.
	want := []string{"few/a/0", "many/a/0", "few/a/1", "many/b/0", "few/a/2", "many/c/0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Work of a cluster that does not answer lasts: it must not take the others' share of the workers.
func TestSlowWorkTakesNoMoreThanItsShare(t *testing.T) {
	q := queue.New(queue.Options{Place: placed})
	fill(q, "slow/a", 100, queue.Commits)
	fill(q, "fast/a", 100, queue.Commits)
	slow := 0
	for range 8 { // four workers are slow/a's by then, and stay
		if strings.HasPrefix(take(t, q), "slow") {
			slow++
		}
	}
	if slow != 4 {
		t.Fatalf("%d of 8 workers on the slow cluster", slow)
	}
	for i := range 20 {
		q.Done(fmt.Sprintf("fast/a/%d", i))
		if key := take(t, q); !strings.HasPrefix(key, "fast") {
			t.Fatalf("got %s, although the slow cluster has its share", key)
		}
	}
}

// A lane that always has one item more must not starve one that has many.
func TestWhoComesBackWaitsForTheirTurn(t *testing.T) {
	q := queue.New(queue.Options{Place: placed})
	fill(q, "one/large", 10, queue.Commits)
	large := 0
	for range 9 {
		for _, lane := range []string{"one/x/0", "one/y/0"} {
			if !q.Asked(lane) {
				q.Add(lane, queue.Commits)
			}
		}
		key := take(t, q)
		if strings.HasPrefix(key, "one/large") {
			large++
		}
		q.Done(key)
	}
	if large != 3 {
		t.Errorf("the large project had %d of 9 turns", large)
	}
}

func TestOneWorkerIsForPeople(t *testing.T) {
	q := queue.New(queue.Options{Place: placed})
	got := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			key, ok := q.Get(context.Background(), queue.People)
			if !ok {
				return
			}
			got <- key
			q.Done(key)
		}
	}()
	fill(q, "one/a", 3, queue.Commits)
	for range 3 { // all other workers are busy, for as long as the test takes
		if key := take(t, q); key == "one/a/hand" {
			t.Fatal("it was not asked for yet")
		}
	}
	q.Add("one/a/9", queue.Housekeeping)
	q.Add("one/a/9", queue.Drift)
	q.Add("one/b/hand", queue.Drift)
	if key := <-got; key != "one/b/hand" {
		t.Errorf("the one for people got %s", key)
	}
	q.Add("one/a/9", queue.People) // what waits may become urgent
	if key := <-got; key != "one/a/9" {
		t.Errorf("the one for people got %s", key)
	}
	q.Close()
	<-ended
}

func TestStateNamesTheOldest(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := queue.New(queue.Options{Now: func() time.Time { return now }})
	q.Add("busy", queue.Commits)
	take(t, q)
	now = now.Add(30 * time.Second)
	q.Add("old", queue.Housekeeping)
	now = now.Add(30 * time.Second)
	q.Add("young", queue.Commits)
	want := queue.State{Waiting: 2, Active: 1, Oldest: 30 * time.Second, OldestKey: "old", Longest: time.Minute, LongestKey: "busy"}
	if diff := cmp.Diff(want, q.State()); diff != "" {
		t.Error(diff)
	}
}

func TestGetEndsWithItsContext(t *testing.T) {
	q := queue.New(queue.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if key, ok := q.Get(ctx, queue.Housekeeping); ok {
		t.Errorf("got %s", key)
	}
	q.Add("a", queue.Drift) // nobody is left who would take it away
	if take(t, q) != "a" {
		t.Error("want a")
	}
}
