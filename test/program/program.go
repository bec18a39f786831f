// Package program makes a test binary Lockstep, too: a test starts its own binary again, so that what is killed and broken
// runs with the race detector, and nothing has to be built beside it.
package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
	"github.com/lockstep-cd/lockstep/test/env"
)

// variable makes the test binary Lockstep.
const variable = "LOCKSTEP_TEST_AS_PROGRAM"

// Main is what a package's TestMain calls; it does not return.
func Main(m *testing.M) {
	worker.Branch(nil) // Lockstep's workers are this binary, too
	if os.Getenv(variable) == "" {
		os.Exit(env.Main(m))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Options{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: "v0.0.0-test"}, os.Args[1:])
	stop()
	os.Exit(code)
}

// Use lets the processes that the test starts from its own binary be Lockstep, until it ends.
func Use(t *testing.T) {
	t.Helper()
	t.Setenv(variable, "1")
}
