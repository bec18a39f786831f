package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/client/direct"
)

// handOverAtOnce bounds the applications that change hands at a time.
const handOverAtOnce = 16

// handoverFlags say which applications change hands, and how.
type handoverFlags struct {
	scope
	selection
	dryRun  bool
	timeout time.Duration
}

func (f *handoverFlags) bind(cmd *cobra.Command, sh *shell) {
	f.scope.bind(cmd, sh)
	f.selection.bind(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error { return f.check(args) }
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done, write nothing")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 3*time.Minute, "how long an application may take; 0 is without end")
}

// handOverOne lets one application change hands and says what came of it.
type handOverOne func(context.Context, *direct.Client, client.Ref) (string, error)

// handOver lets applications change hands and says what came of each; a fault of one does not stop the others.
func (sh *shell) handOver(cmd *cobra.Command, f *handoverFlags, args []string, one handOverOne) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	c, err := direct.New(config)
	if err != nil {
		return err
	}
	refs, err := f.target(cmd, c, &f.scope, args)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	var mu sync.Mutex // of the output
	errs := make([]error, len(refs))
	var group errgroup.Group
	group.SetLimit(handOverAtOnce)
	for i, ref := range refs {
		group.Go(func() error {
			bounded, cancel := limit(ctx, f.timeout)
			defer cancel()
			said, err := one(bounded, c, ref)
			mu.Lock()
			defer mu.Unlock()
			if errs[i] = err; err == nil {
				fmt.Fprintf(sh.Out, "%s: %s\n", ref, said)
			}
			return nil
		})
	}
	_ = group.Wait() // no function of it has an error
	return errors.Join(errs...)
}
