package outside

import (
	"context"
	"time"

	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/local"
)

// announceEvery is how often a forge looks for pushes that came over the wire.
const announceEvery = 250 * time.Millisecond

// Forge is a repository of a git server that announces what is pushed to it.
type Forge struct {
	Repo     *gitserver.Repo
	lockstep *local.Lockstep
	last     string
}

// NewForge makes a forge of a repository. It announces nothing before Tell.
func NewForge(repo *gitserver.Repo) (*Forge, error) {
	head, err := repo.Resolve("main")
	return &Forge{Repo: repo, last: head}, err
}

// Tell sends announcements to lockstep from now on, as a webhook that somebody sets up at a forge.
func (f *Forge) Tell(lockstep *local.Lockstep) { f.lockstep = lockstep }

// Push commits files to main and announces the commit, whose id it returns.
func (f *Forge) Push(ctx context.Context, files map[string]string, message string) (string, error) {
	commit, err := f.Repo.Commit(files, message)
	if err != nil {
		return "", err
	}
	before := f.last
	f.last = commit
	return commit, f.announce(ctx, before, commit)
}

// Serve announces what others push, until ctx ends. Push must not be called meanwhile.
func (f *Forge) Serve(ctx context.Context) {
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		head, err := f.Repo.Resolve("main")
		if err != nil || head == f.last {
			continue
		}
		// A push that could not be announced is tried again at the next look.
		if f.announce(ctx, f.last, head) == nil {
			f.last = head
		}
	}
}

func (f *Forge) announce(ctx context.Context, before, after string) error {
	return f.lockstep.Announce(ctx, local.Push{Repository: f.Repo.URL(), Branch: "main", Before: before, After: after})
}
