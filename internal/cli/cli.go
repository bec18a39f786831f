// Package cli owns the command line: it parses, makes one call through internal/client or runs the chain in its own
// process, and prints. One file holds one command.
//
// It never imports the server. Streams, environment and clock are passed in; nothing is global.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// Options are what the command line takes from the process around it.
type Options struct {
	// In, Out and Err are the streams: results go to Out, everything else to Err.
	In       io.Reader
	Out, Err io.Writer
	// Terminal tells that a person reads Out: tables get colour and are cut to Width.
	Terminal bool
	// Width of the terminal in columns; 0 does not cut.
	Width int
	// Getenv looks up the environment. Nil finds nothing.
	Getenv func(string) string
	// Version is that of the build, such as v0.4.0; empty is shown as dev.
	Version string
	// Now is the clock; nil takes the real one.
	Now func() time.Time
}

// shell is what every command holds: the options, completed.
type shell struct {
	Options
	paint paint
}

// New builds the root command.
func New(o Options) *cobra.Command {
	root, _ := build(o)
	return root
}

// Run runs the command that args name and returns the exit code, after it has told the error to o.Err.
func Run(ctx context.Context, o Options, args []string) int {
	root, running := build(o)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return CodeOK
	}
	if !*running {
		err = usage(err) // all that goes wrong before a command runs is in how it was called
	}
	code := ExitCode(err)
	var silent silentError
	if !errors.As(err, &silent) {
		fmt.Fprintf(root.ErrOrStderr(), "lockstep: %v\n", err)
	}
	if code == CodeUsage {
		fmt.Fprintf(root.ErrOrStderr(), "Run '%s --help' for what it takes.\n", cmd.CommandPath())
	}
	return code
}

// build also returns a flag that is set once flags and arguments are accepted.
func build(o Options) (*cobra.Command, *bool) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	sh := &shell{Options: o, paint: paint(o.Terminal && o.Getenv("NO_COLOR") == "" && o.Getenv("TERM") != "dumb")}
	running := new(bool)
	root := &cobra.Command{
		Use:   "lockstep",
		Short: "Keep Kubernetes clusters in step with Git",
		Long: "Lockstep renders what Git says should run, compares it with what runs, and applies the difference.\n" +
			"The app commands need a kubeconfig and no server; render needs neither.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              noSubcommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun:  func(*cobra.Command, []string) { *running = true },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(o.In)
	root.SetOut(o.Out)
	root.SetErr(o.Err)
	root.AddCommand(sh.commands()...)
	return root, running
}

func (sh *shell) commands() []*cobra.Command {
	return []*cobra.Command{
		newApp(sh),
		newExplain(sh),
		newRender(sh),
		newImpact(sh),
		newInstall(sh),
		newServe(sh),
		newShadow(sh),
		newAdopt(sh),
		newRelease(sh),
		newVersion(sh),
		newExitCodes(),
		newDocs(sh),
	}
}

// noSubcommand refuses arguments of a command that only holds others.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
}

// note tells something that is no result.
func (sh *shell) note(format string, args ...any) { fmt.Fprintf(sh.Err, format+"\n", args...) }
