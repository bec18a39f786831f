// Package gittest owns the short form of gitserver for tests: every step that fails ends the test, and the server ends
// with it.
//
// It imports gitserver only.
package gittest

import "github.com/lockstep-cd/lockstep/test/gitserver"

// TB is the part of testing.TB that is needed here.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// Server is a gitserver that ends with the test.
type Server struct {
	*gitserver.Server
	t TB
}

// Start starts a server.
func Start(t TB, o gitserver.Options) *Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := gitserver.Start(o)
	if err != nil {
		t.Fatalf("git server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Fatalf("git server: %v", err)
		}
	})
	return &Server{Server: s, t: t}
}

// Repo is a repository of the server. The embedded one has the forms that return errors.
type Repo struct {
	*gitserver.Repo
	t TB
}

// Create makes a repository with one commit of the files.
func (s *Server) Create(name string, files map[string]string) *Repo {
	s.t.Helper()
	r, err := s.Server.Create(name, files)
	check(s.t, err)
	return &Repo{Repo: r, t: s.t}
}

func check(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("git server: %v", err)
	}
}

// Commit adds a commit to main and returns its id.
func (r *Repo) Commit(files map[string]string, message string) string {
	r.t.Helper()
	return r.CommitTo("main", files, message)
}

// CommitTo adds a commit to a branch and returns its id.
func (r *Repo) CommitTo(branch string, files map[string]string, message string) string {
	r.t.Helper()
	id, err := r.Repo.CommitTo(branch, files, message)
	check(r.t, err)
	return id
}

// Resolve gives the object that a name stands for.
func (r *Repo) Resolve(name string) string {
	r.t.Helper()
	id, err := r.Repo.Resolve(name)
	check(r.t, err)
	return id
}

// Tag makes or moves a light tag.
func (r *Repo) Tag(name, commit string) {
	r.t.Helper()
	check(r.t, r.Repo.Tag(name, commit))
}

// AnnotatedTag makes or moves an annotated tag and returns the id of the tag object.
func (r *Repo) AnnotatedTag(name, commit, message string) string {
	r.t.Helper()
	id, err := r.Repo.AnnotatedTag(name, commit, message)
	check(r.t, err)
	return id
}

// SetBranch points a branch to a commit, forwards or not.
func (r *Repo) SetBranch(branch, commit string) {
	r.t.Helper()
	check(r.t, r.Repo.SetBranch(branch, commit))
}

// SetRef points any ref to an object.
func (r *Repo) SetRef(ref, object string) {
	r.t.Helper()
	check(r.t, r.Repo.SetRef(ref, object))
}

// DeleteBranch removes a branch.
func (r *Repo) DeleteBranch(branch string) {
	r.t.Helper()
	check(r.t, r.Repo.DeleteBranch(branch))
}

// SetHead makes another branch the default one.
func (r *Repo) SetHead(branch string) {
	r.t.Helper()
	check(r.t, r.Repo.SetHead(branch))
}

// Prune removes everything that no ref leads to.
func (r *Repo) Prune() {
	r.t.Helper()
	check(r.t, r.Repo.Prune())
}
