package gitserver_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

// client runs git as a person would, with nothing of this machine's configuration.
func client(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}, env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func must(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := client(t, dir, env, args...)
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

func TestCloneAndPush(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{SSH: true, Push: true, Username: "ada", Password: "s3cret"})
	repo := srv.Create("team/app", map[string]string{"a": "1"})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(srv.ClientKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte(srv.KnownHosts()), 0o600); err != nil {
		t.Fatal(err)
	}
	ssh := []string{"GIT_SSH_COMMAND=ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -i " + key + " -o UserKnownHostsFile=" + hosts}
	for name, tc := range map[string]struct {
		url string
		env []string
	}{
		"http":             {strings.Replace(repo.URL(), "://", "://ada:s3cret@", 1), nil},
		"http without git": {strings.TrimSuffix(strings.Replace(repo.URL(), "://", "://ada:s3cret@", 1), ".git"), nil},
		"ssh":              {repo.SSHURL(), ssh},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone")
			must(t, ".", tc.env, "clone", "--quiet", tc.url, dir)
			if err := os.WriteFile(filepath.Join(dir, "a"), []byte(name+strings.Repeat("x", 2<<20)), 0o600); err != nil {
				t.Fatal(err)
			}
			must(t, dir, tc.env, "commit", "--quiet", "-am", name)
			must(t, dir, tc.env, "push", "--quiet", "origin", "HEAD:refs/heads/main")
			if got, want := repo.Resolve("main"), must(t, dir, nil, "rev-parse", "HEAD"); got != want {
				t.Errorf("main is %s, pushed %s", got, want)
			}
		})
	}
	if out, err := client(t, ".", nil, "ls-remote", repo.URL()); err == nil {
		t.Errorf("without credentials: %s", out)
	}
	if c := srv.Counts(); c.Pushes < 2 || c.Fetches < 2 || c.SSH != 2 || c.Denied == 0 {
		t.Errorf("%+v", c)
	}
}

func TestPushIsRefusedUnlessAllowed(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	dir := filepath.Join(t.TempDir(), "clone")
	must(t, ".", nil, "clone", "--quiet", repo.URL(), dir)
	must(t, dir, nil, "commit", "--quiet", "--allow-empty", "-m", "x")
	if out, err := client(t, dir, nil, "push", "origin", "HEAD:refs/heads/main"); err == nil {
		t.Errorf("pushed: %s", out)
	}
}

func TestCommits(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	dir := t.TempDir()
	for name, data := range map[string]string{"a": "1", "b/c": "2", `we"ird \ näme`: "3"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	plain, err := srv.CreateFrom("app", dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Commit(map[string]string{"b": gitserver.Deleted, "d": "4"}, "second"); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "clone")
	must(t, ".", nil, "clone", "--quiet", plain.URL(), out)
	must(t, out, nil, "fsck", "--strict")
	got, err := gitserver.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for name := range got {
		if strings.HasPrefix(name, ".git/") {
			delete(got, name)
		}
	}
	want := map[string]string{"a": "1", "d": "4", `we"ird \ näme`: "3", "link": gitserver.Symlink + "b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFaults(t *testing.T) {
	srv := gittest.Start(t, gitserver.Options{})
	repo := srv.Create("app", map[string]string{"a": "1"})
	srv.Break(gitserver.Fault{Status: http.StatusBadGateway})
	if out, err := client(t, ".", nil, "ls-remote", repo.URL()); err == nil || !strings.Contains(out, "502") {
		t.Errorf("%s", out)
	}
	srv.Break(gitserver.Fault{Delay: 300 * time.Millisecond})
	start := time.Now()
	must(t, ".", nil, "ls-remote", repo.URL())
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("took %s", took)
	}
	srv.Break(gitserver.Fault{})
	url := repo.URL()
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	if out, err := client(t, ".", nil, "ls-remote", url); err == nil {
		t.Errorf("%s", out)
	}
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	if out := must(t, ".", nil, "ls-remote", url); !strings.Contains(out, "refs/heads/main") || repo.URL() != url {
		t.Errorf("%s at %s", out, repo.URL())
	}
}
