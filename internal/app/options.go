package app

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// Options of the product. The zero value is completed by defaults; REST is required.
type Options struct {
	// REST is the way to the cluster.
	REST *rest.Config
	// Namespace of applications, projects, Secrets and the lease; default "lockstep".
	Namespace string
	// DataDir holds mirrors, charts and proofs. All of it can be lost at any time; default "lockstep-data".
	DataDir string
	// Listen is the address of the HTTP server; default 127.0.0.1:8080.
	Listen string
	// Identity is the stable name of this process in the lease; default the host's name.
	Identity string
	// LeaseDuration is how long a lease lasts without renewal; default 15 s.
	LeaseDuration time.Duration
	Sources       SourceOptions
	Work          WorkOptions
	Version       string
	Log           *slog.Logger
}

// SourceOptions are the rules for sources.
type SourceOptions struct {
	// PollInterval is how often each repository is asked; default 2 minutes.
	PollInterval time.Duration
	// LocalRoots are folders below which file URLs and paths are taken as repositories.
	LocalRoots []string
	// AllowLoopback lets charts and files be fetched from loopback addresses.
	AllowLoopback bool
}

// WorkOptions bound the work.
type WorkOptions struct {
	// Workers is the number of applications worked on at a time; default 16.
	Workers int
}

func (o Options) complete() (Options, error) {
	if o.REST == nil {
		return o, errors.New("a way to a cluster is missing")
	}
	if o.Namespace == "" {
		o.Namespace = "lockstep"
	}
	if o.DataDir == "" {
		o.DataDir = "lockstep-data"
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:8080"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sources.PollInterval < 0 || o.Sources.PollInterval > 0 && o.Sources.PollInterval < time.Second {
		return o, fmt.Errorf("--poll-interval %s: is shorter than a second", o.Sources.PollInterval)
	}
	if o.Work.Workers < 0 || o.Work.Workers > 1000 {
		return o, fmt.Errorf("--workers %d: is not between 1 and 1000", o.Work.Workers)
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("--identity: is missing, and the host has no name: %w", err)
		}
		o.Identity = host
	}
	return o, nil
}
