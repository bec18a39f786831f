// Command demo shows Lockstep's main job on real input and proves it: it starts a local cluster, a Git server with a
// repository made from examples, and Lockstep; applies an application of applications; then changes Git and the cluster
// and shows what happens and how long it takes. `make demo` runs it. With CI=true it ends by itself.
//
// It uses Lockstep from outside, as a process; of its packages it imports the client only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/lockstep-cd/lockstep/test/local"
)

type options struct {
	// lockstep is the binary to show; empty builds it.
	lockstep string
	// alone ends the demo by itself.
	alone bool
	// slow multiplies the time that each step may take, for busy machines.
	slow float64
}

func main() { os.Exit(program()) }

// program returns the exit code.
func program() int {
	o := options{alone: os.Getenv("CI") == "true"}
	flag.StringVar(&o.lockstep, "lockstep", "", "binary of lockstep to show (default: build it)")
	flag.Float64Var(&o.slow, "slow", 1, "factor on the time that each step may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fd := int(os.Stdout.Fd())
	s := newShow(os.Stdout, term.IsTerminal(fd) && !o.alone, func() int {
		width, _, err := term.GetSize(fd)
		if err != nil {
			return 100
		}
		return width
	})
	err := run(ctx, o, s)
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "demo: interrupted; everything it started is stopped")
		return 130
	case err != nil:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		return 1
	}
	return 0
}

var errInterrupted = errors.New("interrupted")

// run sets the stage, plays all acts and takes the stage down again.
func run(ctx context.Context, o options, s *show) error {
	root, err := local.Root()
	if err != nil {
		return err
	}
	st := &stage{root: root, show: s}
	defer st.close()
	acts := append(st.setting(o), st.proofs()...)
	missed, err := s.play(ctx, o.slow, acts)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	s.summary()
	if !o.alone {
		st.leave(ctx)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d steps did not do what they should in their time", missed, len(acts))
	}
	return nil
}
