package gitserver

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"
)

// Repo is a bare repository of a server. Its branch is main.
type Repo struct {
	s    *Server
	name string
	// mu keeps commits in order.
	mu sync.Mutex
	// count makes each commit's date one second later than the last, from a fixed day: equal steps give equal hashes.
	count int
}

// The prefixes of a file's content that make something else of it. See Repo.Commit.
const (
	// Symlink + target makes a symbolic link.
	Symlink = "symlink:\x00"
	// Submodule + commit makes a submodule entry.
	Submodule = "submodule:\x00"
	// Deleted removes the file or folder.
	Deleted = "deleted:\x00"
)

// Create makes a repository with one commit of the files; without files it stays empty. A name may have slashes.
func (s *Server) Create(name string, files map[string]string) (*Repo, error) {
	r := &Repo{s: s, name: name}
	if err := os.MkdirAll(filepath.Dir(r.Dir()), 0o755); err != nil {
		return nil, err
	}
	if _, err := r.git(nil, "init", "--quiet", "--bare", "--template=", "-b", "main", r.Dir()); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return r, nil
	}
	_, err := r.Commit(files, "first commit")
	return r, err
}

// CreateFrom makes a repository with one commit of the folder's files.
func (s *Server) CreateFrom(name, dir string) (*Repo, error) {
	files, err := ReadDir(dir)
	if err != nil {
		return nil, err
	}
	return s.Create(name, files)
}

// ReadDir reads the files of a folder as Commit takes them.
func ReadDir(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			files[filepath.ToSlash(rel)] = Symlink + target
			return err
		}
		data, err := os.ReadFile(name)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	return files, err
}

// Dir is the repository's folder on disk.
func (r *Repo) Dir() string { return filepath.Join(r.s.opt.Dir, filepath.FromSlash(r.name)+".git") }

// URL is its http(s) URL.
func (r *Repo) URL() string { return r.s.URL(r.name) }

// SSHURL is its ssh:// URL; empty without Options.SSH.
func (r *Repo) SSHURL() string { return r.s.SSHURL(r.name) }

// Commit adds a commit to main that changes the files, and returns its id. Files that are not named stay.
func (r *Repo) Commit(files map[string]string, message string) (string, error) {
	return r.CommitTo("main", files, message)
}

// CommitTo adds a commit to a branch, which starts at main if there is none of this name.
func (r *Repo) CommitTo(branch string, files map[string]string, message string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref := "refs/heads/" + branch
	from := ref
	if _, err := r.Resolve(ref); err != nil {
		from = "refs/heads/main"
	}
	if _, err := r.Resolve(from); err != nil {
		from = ""
	}
	r.count++
	day := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(r.count) * time.Second).Unix()
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit %s\nmark :1\nauthor Ada Example <ada@example.org> %d +0100\n", ref, day)
	fmt.Fprintf(&in, "committer Ada Example <ada@example.org> %d +0100\ndata %d\n%s\n", day, len(message), message)
	if from != "" {
		fmt.Fprintf(&in, "from %s^0\n", from)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		entry(&in, path.Clean(name), files[name])
	}
	in.WriteString("\nget-mark :1\ndone\n")
	out, err := r.git(in.Bytes(), "fast-import", "--quiet", "--done", "--force", "--date-format=raw")
	return strings.TrimSpace(out), err
}

func entry(in *bytes.Buffer, name, data string) {
	mode := "100644"
	if target, ok := strings.CutPrefix(data, Symlink); ok {
		mode, data = "120000", target
	}
	if commit, ok := strings.CutPrefix(data, Submodule); ok {
		fmt.Fprintf(in, "M 160000 %s %s\n", commit, quote(name))
		return
	}
	if data == Deleted {
		fmt.Fprintf(in, "D %s\n", quote(name))
		return
	}
	fmt.Fprintf(in, "M %s inline %s\ndata %d\n%s\n", mode, quote(name), len(data), data)
}

// quote writes a path as fast-import reads any path.
func quote(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

// SetBranch points a branch to a commit, forwards or not: what a forced push does.
func (r *Repo) SetBranch(branch, commit string) error { return r.SetRef("refs/heads/"+branch, commit) }

// DeleteBranch removes a branch.
func (r *Repo) DeleteBranch(branch string) error {
	_, err := r.git(nil, "update-ref", "-d", "refs/heads/"+branch)
	return err
}

// SetRef points any ref to an object.
func (r *Repo) SetRef(ref, object string) error {
	_, err := r.git(nil, "update-ref", ref, object)
	return err
}

// Tag makes or moves a light tag.
func (r *Repo) Tag(name, commit string) error { return r.SetRef("refs/tags/"+name, commit) }

// AnnotatedTag makes or moves an annotated tag and returns the id of the tag object.
func (r *Repo) AnnotatedTag(name, commit, message string) (string, error) {
	if _, err := r.git(nil, "tag", "-f", "-a", "-m", message, name, commit); err != nil {
		return "", err
	}
	return r.Resolve("refs/tags/" + name)
}

// DeleteTag removes a tag.
func (r *Repo) DeleteTag(name string) error {
	_, err := r.git(nil, "update-ref", "-d", "refs/tags/"+name)
	return err
}

// SetHead makes another branch the default one.
func (r *Repo) SetHead(branch string) error {
	_, err := r.git(nil, "symbolic-ref", "HEAD", "refs/heads/"+branch)
	return err
}

// Resolve gives the object that a name stands for.
func (r *Repo) Resolve(name string) (string, error) {
	out, err := r.git(nil, "rev-parse", "--verify", "--quiet", name)
	return strings.TrimSpace(out), err
}

// Prune removes everything that no ref leads to, as a server's own housekeeping does in the end.
func (r *Repo) Prune() error {
	_, err := r.git(nil, "gc", "--quiet", "--prune=now")
	return err
}

func (r *Repo) git(stdin []byte, args ...string) (string, error) {
	cmd := exec.Command(r.s.git, args...)
	cmd.Env = append(cleanEnv(), "GIT_COMMITTER_NAME=Ada Example", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_COMMITTER_DATE=1767268800 +0100")
	if args[0] != "init" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+r.Dir())
	}
	cmd.Stdin = bytes.NewReader(stdin)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}
