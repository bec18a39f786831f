// Command lockstep is the one binary: controller, command line and everything between. It reads the process's
// surroundings and hands them to internal/cli; nothing is decided here.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/lockstep-cd/lockstep/internal/app"
	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
)

// version is set by the linker, from git describe. It is the only variable of its kind: the linker can not set others.
var version = "dev"

func main() {
	worker.Branch(nil) // before anything is opened or started
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)              // a second signal ends the process at once
	app.Bridge(slog.New(slog.DiscardHandler)) // what libraries say on their own is no output of a command; serve logs it
	code := cli.Run(ctx, options(), os.Args[1:])
	stop()
	os.Exit(code)
}

func options() cli.Options {
	o := cli.Options{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: version}
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		o.Terminal = true
		if width, _, err := term.GetSize(fd); err == nil {
			o.Width = width
		}
	}
	return o
}
