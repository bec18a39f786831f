package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/lease"
)

// ErrOption is the kind of errors about options; the text names the flag that sets the option.
var ErrOption = errors.New("option")

// Options of the product. REST is required; everything else has a useful zero value.
type Options struct {
	// REST is the way to the cluster that holds the applications. Rate limit and user agent are set by New.
	REST *rest.Config
	// Namespace of applications, projects, Secrets and the lease; default "lockstep".
	Namespace string
	// Applications is a label selector: only applications that match are kept, others are not touched; empty selects all.
	Applications string
	// DataDir holds mirrors, charts and proofs, for one process. All of it can be lost at any time; default "lockstep-data".
	DataDir string
	// Listen is the host and port of the HTTP server, port 0 takes a free one; default 127.0.0.1:8080.
	Listen  string
	Lease   LeaseOptions
	Sources SourceOptions
	Work    WorkOptions
	// StopWithin bounds a stop as a whole; default 20 s. Kubernetes kills after 30 s where nothing else is said.
	StopWithin time.Duration
	// Version of the build, told to people and to the API server; default "dev".
	Version string
	// Log takes what operators should know; nil drops it.
	Log *slog.Logger
}

// LeaseOptions are this process's part in the question which process is the active one.
type LeaseOptions struct {
	// Identity is the stable name of this process; one that restarts under it takes its lease at once. Default the host's
	// name, which is the pod's in a cluster.
	Identity string
	// Duration is how long a lease lasts without renewal, in whole seconds; default 15 s.
	Duration time.Duration
}

// SourceOptions are the rules for sources.
type SourceOptions struct {
	// PollInterval is how often each repository is asked what it has, from a second on; default 2 minutes.
	PollInterval time.Duration
	// LocalRoots are folders below which file URLs and paths are taken as repositories; none by default.
	LocalRoots []string
	// NoSubmodules leaves submodules out of every repository.
	NoSubmodules bool
	// AllowLoopback lets charts and files be fetched from loopback addresses, for demos and tests.
	AllowLoopback bool
}

// WorkOptions bound the work.
type WorkOptions struct {
	// Workers is the number of applications worked on at a time, up to 1000; default 16.
	Workers int
	// AllowUnsandboxed renders where no sandbox can be built, for sources that are all trusted.
	AllowUnsandboxed bool
}

// completed gives the options with their defaults, checked: nothing has been started or written when one is wrong.
func (o Options) completed() (Options, error) {
	if o.REST == nil {
		return o, errors.New("app: the way to a cluster is missing")
	}
	o.Namespace = first(o.Namespace, "lockstep")
	o.DataDir = first(o.DataDir, "lockstep-data")
	o.Listen = first(o.Listen, "127.0.0.1:8080")
	o.Version = first(o.Version, "dev")
	o.StopWithin = first(o.StopWithin, 20*time.Second)
	o.Sources.PollInterval = first(o.Sources.PollInterval, 2*time.Minute)
	o.Work.Workers = first(o.Work.Workers, 16)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Lease.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, wrong("identity", "", fmt.Sprintf("is missing, and this host has no name: %v", err))
		}
		o.Lease.Identity = host
	}
	roots := make([]string, 0, len(o.Sources.LocalRoots))
	for _, root := range o.Sources.LocalRoots {
		full, err := filepath.Abs(root) // a repository is compared by its full path
		if info, statErr := os.Stat(full); err != nil || statErr != nil || !info.IsDir() {
			return o, wrong("local-repositories", root, "is no folder of this machine")
		}
		roots = append(roots, full)
	}
	o.Sources.LocalRoots = roots
	if _, err := o.selector(); err != nil {
		return o, err
	}
	return o, o.check()
}

// selector is Applications, read; nil selects all.
func (o Options) selector() (labels.Selector, error) {
	if strings.TrimSpace(o.Applications) == "" {
		return nil, nil
	}
	s, err := labels.Parse(o.Applications)
	if err != nil {
		return nil, wrong("applications", o.Applications, fmt.Sprintf("is no label selector, such as lockstep.dev/manager=lockstep: %v", err))
	}
	return s, nil
}

func (o Options) check() error {
	if o.Sources.PollInterval < time.Second {
		return wrong("poll-interval", o.Sources.PollInterval, "is shorter than a second")
	}
	if o.Work.Workers < 0 || o.Work.Workers > 1000 {
		return wrong("workers", o.Work.Workers, "is not between 1 and 1000")
	}
	if o.Lease.Duration != 0 && o.Lease.Duration < lease.MinDuration {
		return fmt.Errorf("app: a lease of %s is too short", o.Lease.Duration)
	}
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return wrong("listen", o.Listen, "is no HOST:PORT, such as 127.0.0.1:8080 or :8080")
	}
	return nil
}

func wrong(option string, value any, reason string) error {
	if value == "" {
		return optionError(fmt.Sprintf("--%s: %s", option, reason))
	}
	return optionError(fmt.Sprintf("--%s %v: %s", option, value, reason))
}

// optionError is an error of kind ErrOption.
type optionError string

func (e optionError) Error() string        { return string(e) }
func (e optionError) Is(target error) bool { return target == ErrOption }

func first[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
