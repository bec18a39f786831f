package engine

import (
	"slices"
	"sync"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// revisionVariable begins the names of the build variables that hold a commit.
const revisionVariable = "ARGOCD_APP_REVISION"

// readers knows what the rendering of each application read of which repository, and at which commit: so that a commit
// costs only those that read what it changes. A nil one knows nothing.
type readers struct {
	mu     sync.RWMutex
	byApp  map[string]*reader
	byRepo map[string]map[tree.Read][]*footprint // by question: a Read without its answer
}

// footprint is what one application read of one repository at one commit.
type footprint struct {
	app, repo string
	// made is what the revision led to when the rendering was made, now the latest of which it is known that everything
	// reads the same there; full is now as a whole commit id, empty while it is made.
	made, now, full string
	reads           []tree.Reads
	// names tells that the commit itself is in the rendering, by a build variable: it concerns every step.
	names bool
}

// reader is what the rendering of one application read.
type reader struct {
	prints []*footprint
	// sources are the footprints of the sources in their order, revisions what they were rendered at.
	sources   []*footprint
	revisions []string
	// answers are what was asked of the cluster's capabilities and of the build variables.
	answers []job.Answers
}

func newReaders() *readers {
	return &readers{byApp: map[string]*reader{}, byRepo: map[string]map[tree.Read][]*footprint{}}
}

// readerOf a rendering: of its sources and of what its templates name; repo is the key of a source's repository.
func readerOf(app *v1alpha1.Application, key string, repo func(located) string, r *rendering) *reader {
	out := &reader{revisions: r.revisions}
	at := func(repo, made string) *footprint {
		for _, f := range out.prints {
			if f.repo == repo && f.made == made {
				return f
			}
		}
		f := &footprint{app: key, repo: repo, made: made, now: made}
		out.prints = append(out.prints, f)
		return f
	}
	refs := map[string]*footprint{}
	for i, s := range effective(app.Spec) {
		f := at(repo(located{s, projectOf(app)}), r.resolved[i])
		out.sources = append(out.sources, f)
		if s.Ref != "" {
			refs[s.Ref] = f
		}
	}
	for i, p := range r.parts {
		if len(p.Answers) > 0 {
			out.answers = append(out.answers, p.Answers)
		}
		own := out.sources[i]
		own.reads = append(own.reads, p.Own)
		own.names = own.names || p.Answers.AskedEnv(revisionVariable)
		for name, reads := range p.Refs {
			refs[name].reads = append(refs[name].reads, reads)
		}
		for _, f := range p.Fetched {
			print := at(repo(locate(f.Locator, projectOf(app))), f.Found)
			print.reads = append(print.reads, f.Reads)
		}
	}
	return out
}

// set replaces what is known of an application; nil forgets it.
func (r *readers) set(app string, now *reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.byApp[app]; old != nil {
		for _, f := range old.prints {
			r.drop(f)
		}
	}
	if now == nil {
		delete(r.byApp, app)
		return
	}
	r.byApp[app] = now
	for _, f := range now.prints {
		index := r.byRepo[f.repo]
		if index == nil {
			index = map[tree.Read][]*footprint{}
			r.byRepo[f.repo] = index
		}
		f.questions(func(q tree.Read) { index[q] = append(index[q], f) })
	}
}

// knows tells whether anything is known of an application.
func (r *readers) knows(app string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byApp[app] != nil
}

// asked are the applications that get another answer from the cluster's capabilities now than when they were rendered.
func (r *readers) asked(c job.Capabilities) []string {
	env := clusterEnv(c)
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []string
	for app, known := range r.byApp {
		if slices.ContainsFunc(known.answers, func(a job.Answers) bool { return !a.HoldCluster(c, env) }) {
			list = append(list, app)
		}
	}
	return list
}

// revisions are what the application was compared with last, as whole commit ids; nil when that is not known.
func (r *readers) revisions(app string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	known := r.byApp[app]
	if known == nil {
		return nil
	}
	list := slices.Clone(known.revisions)
	for i, f := range known.sources {
		if f.full != "" {
			list[i] = f.full
		}
	}
	return list
}

// commits are what the target revisions of the application's sources led to when it was looked at last; nil when that is not
// known.
func (r *readers) commits(app string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	known := r.byApp[app]
	if known == nil {
		return nil
	}
	list := make([]string, 0, len(known.sources))
	for _, f := range known.sources {
		list = append(list, f.now)
	}
	return list
}

// questions are what f asked, each once.
func (f *footprint) questions(visit func(tree.Read)) {
	seen := map[tree.Read]bool{}
	for _, reads := range f.reads {
		for _, one := range reads {
			q := tree.Read{Op: one.Op, Path: one.Path}
			if len(f.reads) > 1 {
				if seen[q] {
					continue
				}
				seen[q] = true
			}
			visit(q)
		}
	}
}

func (r *readers) drop(f *footprint) {
	index := r.byRepo[f.repo]
	f.questions(func(q tree.Read) {
		list := index[q]
		if i := slices.Index(list, f); i >= 0 {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			list = list[:last]
		}
		if len(list) == 0 {
			delete(index, q)
		} else {
			index[q] = list
		}
	})
	if len(index) == 0 {
		delete(r.byRepo, f.repo)
	}
}

// holds is the whole id of commit to if everything that app read of repo when from was rendered reads the same there; else,
// and where that is not known, it is empty.
func (r *readers) holds(app, repo, from, to string) string {
	if r == nil {
		return ""
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	known := r.byApp[app]
	if known == nil {
		return ""
	}
	for _, f := range known.prints {
		if f.repo == repo && f.made == from && f.now == to {
			return f.full
		}
	}
	return ""
}

// step is a move of a repository from one commit to another.
type step struct {
	repo, from, to string
	// full is to as a whole commit id.
	full    string
	changes []tree.Change
}

// advance takes in a step for those of apps whose rendering is known at its start, and returns the others and those that
// read what has changed. What lies in a submodule that moves is not listed, so that such a step concerns everybody.
func (r *readers) advance(s step, apps []string) (concerned []string) {
	if slices.ContainsFunc(s.changes, func(c tree.Change) bool { return c.Submodule }) {
		return apps
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	index := r.byRepo[s.repo]
	touched := map[*footprint]bool{}
	for _, c := range s.changes {
		c.Concerns(func(op tree.ReadOp, path string) {
			for _, f := range index[tree.Read{Op: op, Path: path}] {
				touched[f] = true
			}
		})
	}
	for _, app := range apps {
		if !r.byApp[app].advance(s, touched) {
			concerned = append(concerned, app)
		}
	}
	return concerned
}

// advance tells whether the step is known not to concern the application, and takes it in.
func (r *reader) advance(s step, touched map[*footprint]bool) bool {
	if r == nil {
		return false
	}
	var moved []*footprint
	for _, f := range r.prints {
		if f.repo != s.repo || f.now != s.from {
			continue
		}
		if touched[f] || f.names {
			return false
		}
		moved = append(moved, f)
	}
	for _, f := range moved {
		f.now, f.full = s.to, s.full
	}
	return len(moved) > 0
}
