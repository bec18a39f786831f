package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/queue"
	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/internal/tree"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// monorepo is a repository of many applications that are all rendered at its first commit.
type monorepo struct {
	repos  *repos
	remote *gitserver.Repo
	queue  *queue.Queue
	woken  []string
	reads  map[string]tree.Reads
	apps   map[string]*v1alpha1.Application
}

func newMonorepo(b *testing.B, n int) *monorepo {
	b.Helper()
	server, err := gitserver.Start(gitserver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	files := map[string]string{"base/cm.yaml": "x"}
	for i := range n {
		files[fmt.Sprintf("apps/app-%05d/a.yaml", i)] = fmt.Sprint(i)
	}
	m := &monorepo{queue: queue.New(queue.Options{}), reads: map[string]tree.Reads{}, apps: map[string]*v1alpha1.Application{}}
	if m.remote, err = server.Create("mono", files); err != nil {
		b.Fatal(err)
	}
	store, err := git.Open(git.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	sources := &Sources{Git: store, Repositories: repository.NewSet()}
	m.repos = newRepos(sources, time.Hour, func(apps []string) { m.woken = append(m.woken, apps...) }, slog.New(slog.DiscardHandler))
	m.repos.readers = newReaders()
	m.repos.passed = func(apps []string) {
		for _, app := range apps {
			m.queue.AddAfter(app, queue.Housekeeping, time.Hour)
		}
	}
	b.Cleanup(m.queue.Close)
	for i := range n {
		m.render(b, fmt.Sprintf("app-%05d", i))
	}
	return m
}

// render does what a rendering leaves behind: a subscription, and what was read.
func (m *monorepo) render(b *testing.B, name string) {
	b.Helper()
	app := &v1alpha1.Application{}
	app.Name = name
	app.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: m.remote.URL(), Path: "apps/" + name}
	at := located{*app.Spec.Source, "default"}
	rev, err := m.repos.resolve(b.Context(), name, at, time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	view, set := tree.Record(m.open(b, at, rev.Commit))
	if _, err := tree.Resolve(view, app.Spec.Source.Path); err != nil {
		b.Fatal(err)
	}
	for _, file := range []string{"kustomization.yaml", "Chart.yaml", "a.yaml", "../../base/cm.yaml"} {
		path, _ := tree.Join(app.Spec.Source.Path, file)
		_, _ = view.ReadFile(path) // what is not there is a read too
	}
	if _, err := view.ReadDir(app.Spec.Source.Path); err != nil {
		b.Fatal(err)
	}
	m.apps[name], m.reads[name] = app, set.Reads()
	r := &rendering{resolved: []string{rev.Commit}, revisions: []string{rev.Commit}, parts: []part{{Own: m.reads[name]}}}
	m.repos.readers.set(name, readerOf(app, name, m.repos.sources.key, r))
}

func (m *monorepo) open(b *testing.B, at located, commit string) tree.FS {
	b.Helper()
	repo := m.repos.sources.Repositories.Git(m.repos.sources.Repositories.Find(at.RepoURL, at.project))
	t, err := m.repos.sources.Git.Tree(b.Context(), repo, commit)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkPush is what a commit that concerns one of 10,000 applications of a repository costs, from the look at the
// repository on, fetch included, until that one is woken. "each" is the same without the index: every application holds
// what it read against the new commit, which a look of its own would begin with.
func BenchmarkPush(b *testing.B) {
	const n = 10_000
	m := newMonorepo(b, n)
	change := 0
	push := func(b *testing.B) {
		b.Helper()
		b.StopTimer()
		change++
		if _, err := m.remote.Commit(map[string]string{"apps/app-00007/a.yaml": fmt.Sprint("changed ", change)}, "one"); err != nil {
			b.Fatal(err)
		}
		m.woken = nil
		b.StartTimer()
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			push(b)
			m.repos.refresh(b.Context(), m.repos.all()[0])
			b.StopTimer()
			if len(m.woken) != 1 || m.woken[0] != "app-00007" {
				b.Fatalf("woken: %d", len(m.woken))
			}
			m.render(b, "app-00007")
			b.StartTimer()
		}
	})
	b.Run("each", func(b *testing.B) {
		e := m.repos.all()[0]
		for b.Loop() {
			push(b)
			if err := m.repos.look(b.Context(), e, time.Now()); err != nil {
				b.Fatal(err)
			}
			differ := 0
			for name, app := range m.apps {
				rev, err := e.resolve(*app.Spec.Source)
				if err != nil {
					b.Fatal(err)
				}
				if !m.reads[name].Hold(m.open(b, located{*app.Spec.Source, "default"}, rev.Commit)) {
					differ++
				}
			}
			if differ != 1 {
				b.Fatalf("%d differ", differ)
			}
			b.StopTimer()
			m.render(b, "app-00007")
			b.StartTimer()
		}
	})
}
