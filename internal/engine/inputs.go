package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/resolve"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// part is what one source was made of: everything that it read and asked (DESIGN.md §2.2).
type part struct {
	// Own is what was read of the source itself, Refs what of the sources with a ref, by name.
	Own  tree.Reads            `json:",omitempty"`
	Refs map[string]tree.Reads `json:",omitempty"`
	// Fetched are the sources that templates name.
	Fetched []fetched `json:",omitempty"`
	// Answers are what was asked of the cluster's capabilities and of the build variables.
	Answers job.Answers `json:",omitempty"`
}

type fetched struct {
	Locator job.Locator
	// Name is how a chart names the repository, where it does not write its URL.
	Name string `json:",omitempty"`
	// Found is the commit or version that the locator led to; empty for http and submodules.
	Found string     `json:",omitempty"`
	Reads tree.Reads `json:",omitempty"`
}

// notes gathers a part while a source is rendered.
type notes struct {
	own  *tree.ReadSet
	byID map[string]*tree.ReadSet

	mu      sync.Mutex
	fetched []fetched
	sets    []*tree.ReadSet // of fetched, by place
	modules []fetched
}

func newNotes() *notes { return &notes{byID: map[string]*tree.ReadSet{}} }

func (n *notes) record(f tree.FS) tree.FS {
	view, set := tree.Record(f)
	n.own = set
	return view
}

// refs are the trees of the sources with a ref; what is read of them is noted.
func (n *notes) refs(sources []opened) map[string]tree.FS {
	out := map[string]tree.FS{}
	for _, s := range sources {
		if s.source.Ref != "" {
			out[s.source.Ref], n.byID[s.source.Ref] = tree.Record(s.tree)
		}
	}
	return out
}

// fetch notes what was fetched from where, and gives a view that notes what is read of it.
func (n *notes) fetch(f fetched, t tree.FS, err error) (tree.FS, error) {
	if err != nil {
		return nil, err
	}
	view, set := tree.Record(t)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fetched = append(n.fetched, f)
	n.sets = append(n.sets, set)
	return view, nil
}

// module notes the URL of a submodule of what a locator led to. Its commit is its parent's to say.
func (n *notes) module(url string, err error) {
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.modules = append(n.modules, fetched{Locator: job.Locator{Kind: job.LocateGit, URL: url}})
}

// part is what was noted.
func (n *notes) part(answers job.Answers) part {
	p := part{Own: n.own.Reads(), Answers: answers}
	for name, set := range n.byID {
		if reads := set.Reads(); len(reads) > 0 {
			if p.Refs == nil {
				p.Refs = map[string]tree.Reads{}
			}
			p.Refs[name] = reads
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, f := range n.fetched {
		f.Reads = n.sets[i].Reads()
		p.Fetched = append(p.Fetched, f)
	}
	p.Fetched = append(p.Fetched, n.modules...)
	return p
}

// reuse is old with the revisions of now, if everything that old read and asked is still the same; else nil. An error says
// that a source could not be read.
func (c *Chain) reuse(ctx context.Context, old, now *rendering, r request, revs []resolve.Revision) (*rendering, error) {
	if old == nil || old.inputs != now.inputs || len(old.parts) != len(revs) || len(old.revisions) != len(revs) {
		return nil, nil
	}
	look := &looking{chain: c, r: r, old: old, revs: revs, revisions: slices.Clone(old.revisions), trees: make([]tree.FS, len(revs))}
	for i := range revs {
		if err := look.open(ctx, i); err != nil {
			return nil, err
		}
	}
	for i := range old.parts {
		if !look.holds(ctx, i) {
			return nil, nil
		}
	}
	if slices.Equal(old.resolved, now.resolved) {
		return old, nil
	}
	same := *old
	same.revisions, same.resolved = look.revisions, now.resolved
	return &same, nil
}

// looking is a look whether a rendering still holds.
type looking struct {
	chain     *Chain
	r         request
	old       *rendering
	revs      []resolve.Revision
	revisions []string
	// trees are those of the sources that may say something else now.
	trees []tree.FS
}

// open opens source i if it leads elsewhere than when old was made and it is not known to say the same there.
func (l *looking) open(ctx context.Context, i int) error {
	from, to := l.old.resolved[i], l.revs[i].Commit
	if from == to {
		return nil
	}
	if full := l.chain.readers.holds(l.r.key, l.chain.Sources.key(located{l.r.source(i), projectOf(l.r.app)}), from, to); full != "" {
		l.revisions[i] = full
		return nil
	}
	s, err := l.chain.openOne(ctx, l.r, i, l.revs[i])
	l.revisions[i], l.trees[i] = s.revision, s.tree
	return err
}

// holds tells whether part i is still the same.
func (l *looking) holds(ctx context.Context, i int) bool {
	p := l.old.parts[i]
	if len(p.Answers) > 0 {
		env := buildEnv(l.r, opened{source: l.r.source(i), revision: l.revisions[i]})
		if !p.Answers.Hold(l.r.caps, env) {
			return false
		}
	}
	if t := l.trees[i]; t != nil && !p.Own.Hold(t) {
		return false
	}
	for j := range l.revs {
		if t := l.trees[j]; t != nil && !p.Refs[l.r.sources[j].Ref].Hold(t) {
			return false
		}
	}
	for _, f := range p.Fetched {
		if !l.found(ctx, f) {
			return false
		}
	}
	return true
}

// found tells whether a source that templates name says the same as it did. What is behind an http URL is not asked for
// again; the commit of a submodule is its parent's to say.
func (l *looking) found(ctx context.Context, f fetched) bool {
	r := l.r
	if f.Name != "" {
		if url, err := l.chain.named(r, f.Name); err != nil || url != f.Locator.URL {
			return false
		}
	}
	if r.rules.Source(f.Locator.URL) != nil {
		return false // rendered again, it is refused with the reason
	}
	if f.Found == "" {
		return true
	}
	source := locate(f.Locator, projectOf(r.app))
	rev, err := l.chain.repos.resolve(ctx, r.key, source, r.since)
	if err != nil {
		return false
	}
	if rev.Commit == f.Found || l.chain.readers.holds(r.key, l.chain.Sources.key(source), f.Found, rev.Commit) != "" {
		return true
	}
	t, _, err := l.chain.Sources.open(ctx, source, rev, r.rules.Source)
	return err == nil && f.Reads.Hold(t)
}
