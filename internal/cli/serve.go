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

type serveFlags struct {
	scope
	dataDir       string
	listen        string
	identity      string
	poll          time.Duration
	workers       int
	localRoots    []string
	allowLoopback bool
	logFormat     string
	logLevel      string
}

func newServe(sh *shell) *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Keep a cluster in step: controller, webhooks and metrics in one process",
		Long: "Follows the applications of a namespace and keeps what they declare in step with their sources. Runs inside the\n" +
			"cluster, or anywhere with a kubeconfig. Of several processes one works; the others stand by.",
		Example: "  lockstep serve --kubeconfig ~/.kube/config --data-dir /var/lib/lockstep",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return sh.serve(cmd.Context(), f) },
	}
	f.scope.bind(cmd, sh)
	flags := cmd.Flags()
	flags.StringVar(&f.dataDir, "data-dir", "lockstep-data", "folder for mirrors, charts and proofs; it can be lost at any time")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address of the HTTP server: webhooks, health, metrics")
	flags.StringVar(&f.identity, "identity", "", "stable name of this process in the lease (default the host's name)")
	flags.DurationVar(&f.poll, "poll-interval", 2*time.Minute, "how often each repository is asked what it has")
	flags.IntVar(&f.workers, "workers", 16, "applications worked on at a time")
	flags.StringArrayVar(&f.localRoots, "local-repositories", nil, "folder below which file URLs and paths are repositories; can be repeated")
	flags.BoolVar(&f.allowLoopback, "allow-loopback", false, "let charts and files be fetched from loopback addresses")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}

func (sh *shell) serve(ctx context.Context, f *serveFlags) error {
	logger, err := f.logger(sh.Err)
	if err != nil {
		return err
	}
	app.Bridge(logger)
	config, err := f.clusterConfig()
	if err != nil {
		return err
	}
	a, err := app.New(app.Options{
		REST: config, Namespace: f.namespace, DataDir: f.dataDir, Listen: f.listen, Identity: f.identity,
		Sources: app.SourceOptions{PollInterval: f.poll, LocalRoots: f.localRoots, AllowLoopback: f.allowLoopback},
		Work:    app.WorkOptions{Workers: f.workers}, Version: sh.Version, Log: logger,
	})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

func (f *serveFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, ofKind(errUsage, "--log-level %s: is none of debug, info, warn, error", f.logLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, ofKind(errUsage, "--log-format %s: is neither text nor json", f.logFormat)
}

// clusterConfig is the kubeconfig that was named, or the cluster the process runs in, or the default kubeconfig.
func (f *serveFlags) clusterConfig() (*rest.Config, error) {
	if f.kubeconfig == "" {
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
