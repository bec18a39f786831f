package cli

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-cd/lockstep/internal/engine"
)

// bench is what a command needs that runs the chain here against a cluster: sources, the rules and credentials of a
// namespace, and the comparison.
type bench struct {
	access  *engine.Access
	preview *engine.Preview
	sources *workshop
}

// openBench makes one for the scope's cluster; applications live in its namespace.
func (sh *shell) openBench(ctx context.Context, s *scope, f workshopFlags) (_ *bench, err error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server has fair limits of its own
	b := &bench{}
	if b.access, err = engine.NewAccess(config, s.namespace); err != nil {
		return nil, err
	}
	if b.sources, err = openWorkshop(f); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if err := b.access.Repositories(ctx, b.sources.sources.Repositories); apierrors.IsForbidden(err) {
		sh.note("You may not read the Secrets of repositories, so only public ones can be reached.")
	} else if err != nil {
		return nil, err
	}
	b.preview, err = engine.NewPreview(config, b.sources.sources)
	return b, err
}

func (b *bench) close() { b.sources.close() }
