// Command tryout shows what Lockstep makes of public repositories: it takes checkouts of them, packages the charts found
// there, serves charts and repositories on this machine under the URLs that they have in public, creates an application for
// each, and prints a table of what came of it.
//
//	go run ./dev/tryout --from ~/src/argocd-example-apps --from ~/src/argo-helm.git=https://github.com/argoproj/argo-helm
//
// The original URLs lead to this machine through a proxy that the applications' repositories are configured with: what runs
// is the product as it is. Nothing that a checkout holds is kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	// from are checkouts: DIR or DIR=URL.
	from list
	// paths are globs of folders to deploy from each checkout; without them the selection counts.
	paths list
	// selected is the file that says what to deploy; empty takes every chart and kustomization.
	selected string
	// lockstep is the binary to try; empty builds it.
	lockstep string
	// limit is how long one application may take until it is in step and healthy.
	limit    time.Duration
	markdown bool
	keep     bool
}

// list is a flag that may be given several times.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, " ") }

// Set implements flag.Value.
func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func main() { os.Exit(program()) }

// program returns the exit code.
func program() int {
	var o options
	flag.Var(&o.from, "from", "checkout or bare repository: DIR, or DIR=URL where it does not know its public URL; may be given several times")
	flag.Var(&o.paths, "path", "deploy only folders that match this glob (** matches any number of them); may be given several times")
	flag.StringVar(&o.selected, "select", "", "file that says what to deploy, such as dev/tryout/public.yaml (default every chart and kustomization)")
	flag.StringVar(&o.lockstep, "lockstep", "", "binary of lockstep to try (default: build it)")
	flag.DurationVar(&o.limit, "limit", 90*time.Second, "how long one application may take to be in step and healthy")
	flag.BoolVar(&o.markdown, "markdown", false, "print the table as a section for docs/compatibility.md")
	flag.BoolVar(&o.keep, "keep", false, "leave everything running until Ctrl-C")
	flag.Parse()
	o.from = append(o.from, flag.Args()...)
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the Helm library tells of every link that it follows
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "tryout: %v\n", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, o options) (err error) {
	if len(o.from) == 0 {
		return errors.New("nothing to try: name checkouts by --from")
	}
	dir, err := os.MkdirTemp("", "lockstep-tryout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	found, err := collect(ctx, o, dir)
	if err != nil {
		return err
	}
	say("%d things to deploy from %d repositories", deployable(found.subjects), len(found.checkouts))
	l := &laboratory{dir: dir, options: o}
	defer l.close()
	if err := l.start(ctx, found); err != nil {
		return err
	}
	results := l.measure(ctx, found.subjects)
	if err := ctx.Err(); err != nil {
		return err
	}
	r := report{results: results, checkouts: found.checkouts, missed: l.offer.urls.misses()}
	if o.markdown {
		r.markdown(os.Stdout)
	} else {
		r.table(os.Stdout)
	}
	if o.keep {
		say("everything keeps running until Ctrl-C; KUBECONFIG=%s, log %s", l.cluster.Kubeconfig, l.lockstep.Log)
		<-ctx.Done()
	}
	return r.verdict()
}

// say tells what goes on; the table alone goes to the output.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
