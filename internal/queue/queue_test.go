package queue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/internal/queue"
)

func take(t *testing.T, q *queue.Queue) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	key, ok := q.Get(ctx, queue.Housekeeping)
	if !ok {
		t.Fatal("nothing to get")
	}
	return key
}

func TestOrderIsByPriorityThenAge(t *testing.T) {
	q := queue.New(queue.Options{})
	q.Add("drift", queue.Drift)
	q.Add("late commit", queue.Housekeeping)
	q.Add("commit", queue.Commits)
	q.Add("late commit", queue.Commits)
	q.Add("person", queue.People)
	q.Add("drift", queue.Housekeeping) // asked again, less urgently: stays
	var got []string
	for range 4 {
		got = append(got, take(t, q))
	}
	// A key that becomes more urgent keeps its age.
	if diff := cmp.Diff([]string{"person", "late commit", "commit", "drift"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOneWorkerPerKey(t *testing.T) {
	q := queue.New(queue.Options{})
	q.Add("a", queue.Drift)
	if take(t, q) != "a" {
		t.Fatal("want a")
	}
	q.Add("a", queue.Drift)
	q.Add("a", queue.People)
	q.Add("b", queue.Drift)
	if got := take(t, q); got != "b" {
		t.Fatalf("a is worked on, got %s", got)
	}
	q.Done("a")
	if got := take(t, q); got != "a" {
		t.Fatalf("a was asked for again, got %s", got)
	}
	if s := q.State(); s.Waiting != 0 || s.Active != 2 {
		t.Errorf("state %+v", s)
	}
}

func TestAfterKeepsTheEarliest(t *testing.T) {
	q := queue.New(queue.Options{})
	q.AddAfter("a", queue.Drift, time.Hour)
	q.AddAfter("a", queue.Drift, time.Millisecond)
	q.AddAfter("a", queue.Drift, 2*time.Hour)
	if take(t, q) != "a" {
		t.Fatal("want a")
	}
}

func TestManyWorkersSeeEveryKeyOnce(t *testing.T) {
	q := queue.New(queue.Options{})
	var mu sync.Mutex
	seen := map[string]int{}
	var done, wg sync.WaitGroup
	done.Add(1000)
	for range 8 {
		wg.Go(func() {
			for {
				key, ok := q.Get(context.Background(), queue.Housekeeping)
				if !ok {
					return
				}
				mu.Lock()
				seen[key]++
				mu.Unlock()
				q.Done(key)
				done.Done()
			}
		})
	}
	for i := range 1000 {
		q.Add(string(rune('a'+i%26))+time.Duration(i).String(), queue.Priority(i%4))
	}
	done.Wait()
	q.Close()
	wg.Wait()
	if len(seen) != 1000 {
		t.Errorf("%d keys seen", len(seen))
	}
}
