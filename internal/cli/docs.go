package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newDocs prints docs/cli.md. It is hidden: make generate runs it through the tests.
func newDocs(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use:    "docs",
		Short:  "Print the reference of the command line as Markdown",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			WriteReference(sh.Out, cmd.Root())
			return nil
		},
	}
}

// WriteReference writes the reference of root and all commands below it.
func WriteReference(out io.Writer, root *cobra.Command) {
	fmt.Fprint(out, "# Command line\n\n<!-- Written by make generate from the commands themselves; edit those. -->\n\n")
	fmt.Fprintf(out, "%s\n\n", root.Long)
	fmt.Fprint(out, "Results go to standard output, everything else to standard error. Colour is for terminals only, and NO_COLOR turns\n"+
		"it off; no meaning is in a colour alone. `-o json` and `-o yaml` are stable; tables may change.\n\n")
	fmt.Fprintf(out, "## Exit codes\n\n| Code | Meaning |\n|---|---|\n")
	for _, row := range exits() {
		fmt.Fprintf(out, "| %d | %s |\n", row.code, row.meaning)
	}
	for _, cmd := range root.Commands() {
		writeCommand(out, cmd)
	}
}

func writeCommand(out io.Writer, cmd *cobra.Command) {
	if cmd.Hidden || !cmd.Runnable() || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	fmt.Fprintf(out, "\n## %s\n\n", cmd.CommandPath())
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(out, "%s\n\n```\n%s\n```\n", about, strings.TrimSpace(cmd.UseLine()))
	if cmd.Example != "" {
		fmt.Fprintf(out, "\nExamples:\n\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(cmd.Example), "\n  ", "\n"))
	}
	writeFlags(out, "", cmd.NonInheritedFlags())
	if cmd.HasSubCommands() {
		for _, sub := range cmd.Commands() {
			writeCommand(out, sub)
		}
	}
}

func writeFlags(out io.Writer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(out, "\n%s| Flag | Default | Meaning |\n|---|---|---|\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		def := f.DefValue
		if def == "false" || def == "[]" || def == "" {
			def = ""
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", name, def, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
}
