package cli

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

// follow prints what is there, then every change, until ctx ends, which is no error.
func (p *appPrinter) follow(ctx context.Context, apps client.Watcher, q client.Query) error {
	var first []v1alpha1.Application
	listed := false
	err := apps.Watch(ctx, q, func(e client.Event) error {
		switch {
		case e.Kind == client.Listed:
			listed = true
			if p.documents() {
				return nil
			}
			p.rows(first) // together, so that the columns fit
			return nil
		case e.Kind == client.Deleted:
			p.sh.note("%s is deleted.", client.RefOf(e.App))
			return nil
		case !listed && !p.documents():
			first = append(first, *e.App)
			return nil
		}
		return p.one(e.App)
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (p *appPrinter) documents() bool {
	return p.output.format == formatJSON || p.output.format == formatYAML
}

// followAll calls visit for every event of the namespaces that refs name, one at a time, until visit has returned
// client.ErrStop or ctx ends. It watches once per namespace, whatever the number of names; Listed comes once, after the
// last of them.
func followAll(ctx context.Context, apps client.Watcher, refs []client.Ref, visit func(client.Event) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	stopped := false
	watches := queries(refs)
	unlisted := len(watches)
	group, ctx := errgroup.WithContext(ctx)
	for _, q := range watches {
		group.Go(func() error {
			return apps.Watch(ctx, q, func(e client.Event) error {
				mu.Lock()
				defer mu.Unlock()
				if stopped {
					return client.ErrStop
				}
				if e.Kind == client.Listed {
					if unlisted--; unlisted > 0 {
						return nil
					}
				}
				err := visit(e)
				if errors.Is(err, client.ErrStop) {
					stopped = true
					stop() // the other namespaces too
				}
				return err
			})
		})
	}
	err := group.Wait()
	if stopped {
		return nil
	}
	return err
}

// queries watches one application by its name, several by their namespaces.
func queries(refs []client.Ref) []client.Query {
	if len(refs) == 1 {
		return []client.Query{{Namespace: refs[0].Namespace, Name: refs[0].Name}}
	}
	seen := map[string]bool{}
	var list []client.Query
	for _, ref := range refs {
		if !seen[ref.Namespace] {
			seen[ref.Namespace] = true
			list = append(list, client.Query{Namespace: ref.Namespace})
		}
	}
	return list
}
