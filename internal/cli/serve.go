package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/app"
)

// serveFlags are the flags of serve. Their defaults are written here once more than in app, for people to read.
type serveFlags struct {
	scope
	dataDir  string
	listen   string
	identity string
	workers  int
	unboxed  bool
	selector string
	sources  sourceRules
	log      logFlags
}

// sourceRules say where sources may come from, and how often they are asked.
type sourceRules struct {
	poll          time.Duration
	localRoots    []string
	allowLoopback bool
	submodules    bool
}

// logFlags say what is logged, and how.
type logFlags struct {
	format, level string
}

func newServe(sh *shell) *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Keep a cluster in step: controller, webhooks and metrics in one process",
		Long: "Follows the applications of a namespace and keeps what they declare in step with their sources. Runs inside the\n" +
			"cluster, or anywhere with a kubeconfig. Of several processes one works; the others stand by and follow when it stops.\n" +
			"SIGTERM and SIGINT stop it: what is under way ends, and the next process can begin at once.\n\n" +
			"The HTTP server answers on /api/webhook (push events of forges and registries, which show the secrets that the\n" +
			"Secret argocd-secret sets for them; see docs/webhooks.md), /healthz (the process lives; with\n" +
			"?full=true every part is looked at), /readyz (it holds the lease and has looked at every application), /metrics and\n" +
			"/api/version.",
		Example: "  lockstep serve --kubeconfig ~/.kube/config --data-dir /var/lib/lockstep",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return sh.serve(cmd.Context(), f) },
	}
	f.bind(cmd, sh)
	return cmd
}

func (f *serveFlags) bind(cmd *cobra.Command, sh *shell) {
	f.scope.bind(cmd, sh)
	flags := cmd.Flags()
	flags.StringVar(&f.dataDir, "data-dir", "lockstep-data", "folder for mirrors, charts and proofs, for one process; it can be lost at any time")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address of the HTTP server; port 0 takes a free one")
	flags.StringVar(&f.identity, "identity", "", "stable name of this process in the lease (default the host's name)")
	flags.IntVar(&f.workers, "workers", 16, "applications worked on at a time, up to 1000")
	flags.BoolVar(&f.unboxed, "allow-unsandboxed", false, "render where the kernel has no Landlock or no seccomp, for sources that are all trusted")
	flags.StringVar(&f.selector, "applications", "", "label selector of the applications to keep; others are not touched (default all)")
	flags.DurationVar(&f.sources.poll, "poll-interval", 2*time.Minute, "how often each repository is asked what it has, from 1s on")
	flags.StringArrayVar(&f.sources.localRoots, "local-repositories", nil, "folder below which file URLs and paths are repositories; can be repeated")
	flags.BoolVar(&f.sources.submodules, "submodules", true, "lay the submodules of repositories in; a Secret turns it off for its own with enableSubmodules: \"false\"")
	flags.BoolVar(&f.sources.allowLoopback, "allow-loopback", false, "let charts and files be fetched from loopback addresses, for demos and tests")
	flags.StringVar(&f.log.format, "log-format", "text", "text or json")
	flags.StringVar(&f.log.level, "log-level", "info", "debug, info, warn or error")
}

func (sh *shell) serve(ctx context.Context, f *serveFlags) error {
	logger, err := f.log.logger(sh.Err)
	if err != nil {
		return err
	}
	if f.workers < 1 {
		return ofKind(errUsage, "--workers %d: is not between 1 and 1000", f.workers)
	}
	config, err := f.clusterConfig()
	if err != nil {
		return err
	}
	a, err := app.New(app.Options{
		REST: config, Namespace: f.namespace, Applications: f.selector, DataDir: f.dataDir, Listen: f.listen,
		Lease: app.LeaseOptions{Identity: f.identity},
		Sources: app.SourceOptions{
			PollInterval: f.sources.poll, LocalRoots: f.sources.localRoots, AllowLoopback: f.sources.allowLoopback, NoSubmodules: !f.sources.submodules,
		},
		Work:    app.WorkOptions{Workers: f.workers, AllowUnsandboxed: f.unboxed},
		Version: sh.Version, Log: logger,
	})
	if err != nil {
		return err
	}
	app.Bridge(logger)
	return a.Run(ctx)
}

func (f logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, ofKind(errUsage, "--log-level %s: is none of debug, info, warn, error", f.level)
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, ofKind(errUsage, "--log-format %s: is neither text nor json", f.format)
}

// clusterConfig is the kubeconfig that was named, or the cluster the process runs in, or the default kubeconfig.
func (f *serveFlags) clusterConfig() (*rest.Config, error) {
	if f.kubeconfig == "" && f.context == "" {
		config, err := rest.InClusterConfig()
		if err == nil {
			return config, nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, err
		}
	}
	return f.config()
}
