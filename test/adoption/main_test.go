package adoption_test

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

// TestMain is Lockstep, too: the tests start this binary again, so that what is killed and broken runs with the race
// detector, and nothing has to be built beside it.
func TestMain(m *testing.M) {
	worker.Branch(nil) // and its workers
	if os.Getenv(programVariable) == "" {
		os.Exit(env.Main(m))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Options{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: "v0.0.0-test"}, os.Args[1:])
	stop()
	os.Exit(code)
}

// programVariable makes the test binary Lockstep.
const programVariable = "LOCKSTEP_TEST_AS_PROGRAM"
