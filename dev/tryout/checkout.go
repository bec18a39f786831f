package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkout is a public repository that lies on this machine. It is read only.
type checkout struct {
	// url is where it is public, without .git.
	url *url.URL
	// gitDir is the folder with its objects.
	gitDir string
	// head is the commit that is checked out, or HEAD's in a bare repository.
	head string
	// trees are the folders that commits were written to, by commit.
	trees map[string]string
	// served are the commits that stand for others; see serve.
	served map[string]string
	dir    string
}

// openCheckout reads DIR or DIR=URL; commits are written below dir.
func openCheckout(ctx context.Context, from, dir string) (*checkout, error) {
	folder, public, named := strings.Cut(from, "=")
	c := &checkout{trees: map[string]string{}, served: map[string]string{}, dir: dir}
	gitDir, err := git(ctx, nil, "-C", folder, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return nil, fmt.Errorf("%s: is no Git repository: %w", folder, err)
	}
	c.gitDir = gitDir
	if c.head, err = c.resolve(ctx, "HEAD"); err != nil {
		return nil, err
	}
	if !named {
		if public, err = c.git(ctx, "config", "--get", "remote.origin.url"); err != nil {
			return nil, fmt.Errorf("%s: has no remote named origin: give its public URL as --from %s=URL", folder, folder)
		}
	}
	c.url, err = publicURL(public)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return c, nil
}

// publicURL is the https form of a repository's URL: people clone by ssh what everybody reads by https.
func publicURL(text string) (*url.URL, error) {
	if rest, ok := strings.CutPrefix(text, "git@"); ok && !strings.Contains(text, "://") {
		text = "https://" + strings.Replace(rest, ":", "/", 1)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", text, err)
	}
	if u.Scheme == "ssh" {
		u.Scheme, u.Host = "https", u.Hostname()
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("URL %s: is no public address", text)
	}
	u.User, u.Path = nil, strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git")
	return u, nil
}

// resolve gives the commit that a name stands for.
func (c *checkout) resolve(ctx context.Context, name string) (string, error) {
	commit, err := c.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%s: has no commit %s", c.url, name)
	}
	return commit, nil
}

// files lists the files of a commit.
func (c *checkout) files(ctx context.Context, commit string) ([]string, error) {
	out, err := c.git(ctx, "ls-tree", "-r", "-z", "--name-only", commit)
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), err
}

// read is the content of one file of a commit.
func (c *checkout) read(ctx context.Context, commit, file string) (string, error) {
	return c.git(ctx, "cat-file", "blob", commit+":"+file)
}

// tree writes a commit's files to a folder, once.
func (c *checkout) tree(ctx context.Context, commit string) (string, error) {
	if dir, ok := c.trees[commit]; ok {
		return dir, nil
	}
	dir, err := os.MkdirTemp(c.dir, "tree-")
	if err != nil {
		return "", err
	}
	// An index of our own: the checkout's is not touched.
	env := []string{"GIT_INDEX_FILE=" + dir + ".index"}
	if _, err := git(ctx, env, "--git-dir", c.gitDir, "read-tree", commit); err != nil {
		return "", err
	}
	if _, err := git(ctx, env, "--git-dir", c.gitDir, "--work-tree", dir, "checkout-index", "--all", "--quiet"); err != nil {
		return "", err
	}
	c.trees[commit] = dir
	return dir, nil
}

// serve lays the repository where a git server with the folder root finds it by host and path. A checkout without all of
// its history can not be fetched from: then commits of the same files without a history are served in place of commits.
func (c *checkout) serve(ctx context.Context, root string, commits []string) error {
	at := filepath.Join(root, c.url.Host, filepath.FromSlash(c.url.Path)+".git")
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	whole := true
	for _, commit := range commits {
		if _, err := c.git(ctx, "rev-list", "--objects", "--quiet", commit); err != nil {
			whole = false
		}
	}
	if whole {
		return os.Symlink(c.gitDir, at)
	}
	if _, err := git(ctx, nil, "init", "--quiet", "--bare", "--template=", "-b", "main", at); err != nil {
		return err
	}
	alternates := filepath.Join(at, "objects", "info", "alternates")
	if err := os.MkdirAll(filepath.Dir(alternates), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(alternates, []byte(filepath.Join(c.gitDir, "objects")+"\n"), 0o600); err != nil {
		return err
	}
	for _, commit := range commits {
		if err := c.serveAlone(ctx, at, commit); err != nil {
			return err
		}
	}
	return nil
}

// serveAlone makes a commit without parents of a commit's files, in the repository at.
func (c *checkout) serveAlone(ctx context.Context, at, commit string) error {
	author := []string{
		"GIT_AUTHOR_NAME=try-out", "GIT_AUTHOR_EMAIL=tryout@example.org", "GIT_COMMITTER_NAME=try-out", "GIT_COMMITTER_EMAIL=tryout@example.org",
	}
	alone, err := git(ctx, author, "--git-dir", at, "commit-tree", "-m", "the files of "+commit, commit+"^{tree}")
	if err != nil {
		return err
	}
	c.served[commit] = alone
	ref := "refs/heads/" + commit
	if commit == c.head {
		ref = "refs/heads/main"
	}
	_, err = git(ctx, nil, "--git-dir", at, "update-ref", ref, alone)
	return err
}

// revision is the commit to ask the server for.
func (c *checkout) revision(commit string) string {
	if alone := c.served[commit]; alone != "" {
		return alone
	}
	return commit
}

func (c *checkout) git(ctx context.Context, args ...string) (string, error) {
	return git(ctx, nil, append([]string{"--git-dir", c.gitDir}, args...)...)
}

// git runs git without anybody's configuration, the checkout's programs included.
func git(ctx context.Context, env []string, args ...string) (string, error) {
	fixed := []string{"-c", "safe.directory=*", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false"}
	cmd := exec.CommandContext(ctx, "git", append(fixed, args...)...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}
