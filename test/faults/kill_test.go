package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/lockstep-cd/lockstep/test/env"
)

// killsVariable is how often TestKilledInsideASync kills; make soak sets it. Default: once at each of three instants.
const killsVariable = "LOCKSTEP_TEST_KILLS"

// instant is when a process is killed: at the first thing after a push that matches.
type instant struct {
	name  string
	found func(n int, h happening) bool
}

func instants(t *testing.T) []instant {
	t.Helper()
	named := []instant{
		{"a hook was just made", func(_ int, h happening) bool { return h.verb == "added" && h.kind == "Job" }},
		{"a wave waits for health", func(_ int, h happening) bool { return h.verb == "changed" && h.kind == "Deployment" }},
		{"an object was pruned", func(_ int, h happening) bool { return h.verb == "deleted" && h.kind == "ConfigMap" }},
	}
	text := os.Getenv(killsVariable)
	if text == "" {
		return named
	}
	kills, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("$%s: %v", killsVariable, err)
	}
	var all []instant
	for len(all) < kills {
		at := rand.IntN(24) // about as many things happen in one sync
		all = append(all, instant{fmt.Sprintf("after %d happenings", at), func(n int, _ happening) bool { return n >= at }})
	}
	return all
}

// A process that is killed inside a sync with hooks, waves and prune is followed by one that ends the sync: every second
// time without the data of the first.
func TestKilledInsideASync(t *testing.T) {
	b := newBed(t, env.Cluster(t))
	b.app("waves")
	b.app("plain")
	b.converged(b.head())
	for i, at := range instants(t) {
		t.Run(fmt.Sprintf("%d %s", i, at.name), func(t *testing.T) {
			b.t = t
			mark := b.seen.mark()
			commit := b.push()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			h, err := b.seen.wait(ctx, mark, at.found)
			if err != nil {
				t.Fatal(err)
			}
			b.lockstep.Kill()
			t.Logf("killed after %s", h)
			if i%2 == 1 {
				if err := os.RemoveAll(b.data()); err != nil {
					t.Fatal(err)
				}
			}
			b.start()
			b.converged(commit)
			b.judge(mark)
		})
	}
}
