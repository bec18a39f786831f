package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/internal/app"
	"github.com/lockstep-cd/lockstep/internal/client"
)

// The exit codes. They are part of the interface: a number never changes its meaning.
const (
	CodeOK          = 0
	CodeError       = 1
	CodeUsage       = 2
	CodeDifferent   = 3
	CodeDegraded    = 4
	CodeTimeout     = 5
	CodeNotFound    = 6
	CodeRefused     = 7
	CodeUnreachable = 8
	CodeSyncFailed  = 9
	CodeReplaced    = 10
	CodeInterrupted = 130
)

// The kinds of errors that only the command line has.
var (
	errUsage       = errors.New("usage")
	errDifferent   = errors.New("different")
	errDiffers     = errors.New("applications differ") // of shadow; it has no row of its own
	errDegraded    = errors.New("degraded")
	errTimeout     = errors.New("timeout")
	errSyncFailed  = errors.New("sync failed")
	errReplaced    = errors.New("replaced by another operation")
	errInterrupted = errors.New("interrupted")
)

// exit is one row of the table of exit codes.
type exit struct {
	code int
	// kinds are the errors that end with the code; the first row that matches wins.
	kinds   []error
	meaning string
}

func exits() []exit {
	return []exit{
		{CodeOK, nil, "done; for wait and sync: what was asked for is so"},
		{CodeError, nil, "anything that has no code of its own; shadow: applications differ"},
		{CodeUsage, []error{errUsage, client.ErrInvalid, app.ErrOption}, "the command was called in a way that makes no sense"},
		{CodeDifferent, []error{errDifferent}, "app diff --exit-code: cluster and source differ; impact --exit-code: an application changes"},
		{CodeDegraded, []error{errDegraded}, "app wait: the time is over and an application is Degraded"},
		{CodeTimeout, []error{errTimeout, context.DeadlineExceeded}, "the time given by --timeout is over"},
		{CodeNotFound, []error{client.ErrNotFound}, "what was named does not exist, or no longer"},
		{
			CodeRefused,
			[]error{client.ErrInProgress, client.ErrNothingRuns, client.ErrRefused, client.ErrForbidden, client.ErrUnauthenticated},
			"refused: another operation is in progress, it would not hold, or you may not",
		},
		{CodeUnreachable, []error{client.ErrUnreachable, client.ErrNotInstalled, app.ErrNotInstalled}, "the cluster does not answer, or does not have Lockstep's kinds"},
		{CodeSyncFailed, []error{errSyncFailed}, "app sync: the sync ended as Failed or Error"},
		{CodeReplaced, []error{errReplaced}, "app sync: another operation took the place of this one"},
		{CodeInterrupted, []error{errInterrupted, context.Canceled}, "interrupted by a signal"},
	}
}

// ExitCode is the code for err.
func ExitCode(err error) int {
	if err == nil {
		return CodeOK
	}
	for _, row := range exits() {
		for _, kind := range row.kinds {
			if errors.Is(err, kind) {
				return row.code
			}
		}
	}
	return CodeError
}

// kindError is an error with a kind that its text does not repeat.
type kindError struct {
	kind error
	msg  string
}

func (e kindError) Error() string { return e.msg }
func (e kindError) Unwrap() error { return e.kind }

func ofKind(kind error, format string, args ...any) error {
	return kindError{kind: kind, msg: fmt.Sprintf(format, args...)}
}

func usage(err error) error { return kindError{kind: errUsage, msg: err.Error()} }

// silentError ends with the code of its kind after the output has said everything.
type silentError struct{ kind error }

func (e silentError) Error() string { return e.kind.Error() }
func (e silentError) Unwrap() error { return e.kind }

// exitTable is the table as text, for the help topic and the reference.
func exitTable() string {
	var b strings.Builder
	for _, row := range exits() {
		fmt.Fprintf(&b, "  %3d  %s\n", row.code, row.meaning)
	}
	return b.String()
}

// newExitCodes is a help topic: lockstep help exit-codes.
func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long:  "The exit codes of all commands:\n\n" + exitTable(),
	}
}
