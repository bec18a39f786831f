package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// workshopFlags say what a command that fetches sources may reach.
type workshopFlags struct {
	local []string
}

func (f *workshopFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.local, "local-repositories", nil, "folder below which file: URLs are accepted; may be given several times")
}

// workshop fetches sources into a folder of its own, for the time of one command: two commands never wait for each other,
// and nothing is left behind.
type workshop struct {
	sources *engine.Sources
	dir     string
	stores  []interface{ Close() error }
}

// openWorkshop makes one. The person who runs the command may reach every address that the machine can, so none is refused.
func openWorkshop(f workshopFlags) (_ *workshop, err error) {
	dir, err := os.MkdirTemp("", "lockstep-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	w := &workshop{dir: dir}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	repositories, err := git.Open(git.Options{Dir: filepath.Join(dir, "git"), LocalRoots: f.local})
	if err != nil {
		return nil, err
	}
	w.stores = append(w.stores, repositories)
	charts, err := chart.Open(chart.Options{
		Dir:          filepath.Join(dir, "charts"),
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
	})
	if err != nil {
		return nil, err
	}
	w.stores = append(w.stores, charts)
	w.sources = &engine.Sources{Git: repositories, Charts: charts, Repositories: repository.NewSet()}
	return w, nil
}

// lateFetcher opens a workshop when the first source is asked for: most folders need none, nor git.
type lateFetcher struct {
	flags workshopFlags
	app   *v1alpha1.Application

	mu    sync.Mutex
	w     *workshop
	fetch job.Fetcher
}

// Fetch implements job.Fetcher.
func (l *lateFetcher) Fetch(ctx context.Context, from job.Locator) (tree.FS, error) {
	l.mu.Lock()
	if l.w == nil {
		w, err := openWorkshop(l.flags)
		if err != nil {
			l.mu.Unlock()
			return nil, err
		}
		l.w, l.fetch = w, engine.NewFetcher(w.sources, l.app)
	}
	l.mu.Unlock()
	return l.fetch.Fetch(ctx, from)
}

func (l *lateFetcher) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w != nil {
		l.w.close()
	}
}

// close gives everything back. What can not be removed is in the system's temporary folder, and no result depends on it.
func (w *workshop) close() {
	var errs []error
	for _, s := range w.stores {
		errs = append(errs, s.Close())
	}
	_ = errors.Join(append(errs, os.RemoveAll(w.dir))...)
}
