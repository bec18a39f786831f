package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// maxOutput bounds what is read from one git program: the refs of the largest repositories fit.
	maxOutput = 64 << 20
	// maxStderr bounds what is kept of its complaints.
	maxStderr = 16 << 10
)

// setting is one git configuration value. It goes through the environment, so that none shows in the arguments.
type setting struct{ name, value string }

// program is one run of git.
type program struct {
	// gitDir is the mirror, or empty.
	gitDir   string
	settings []setting
	env      []string
	stdin    io.Reader
	// secret is read by the credential helper from file descriptor 3.
	secret *os.File
	args   []string
}

// failure is a run of git that did not end well.
type failure struct {
	exit   int
	stderr string
	// cause is set when git did not run or was ended by us.
	cause error
}

func (f *failure) Error() string {
	if f.cause != nil {
		return "git: " + f.cause.Error()
	}
	return "git: " + firstLine(f.stderr)
}

func (f *failure) Unwrap() error { return f.cause }

// hardening is the configuration of every run; DESIGN.md §2.1.
func hardening() []setting {
	return []setting{
		{"core.hooksPath", os.DevNull},
		{"core.fsmonitor", "false"},
		{"core.askPass", ""},
		{"credential.helper", ""},
		{"protocol.ext.allow", "never"},
		{"fetch.recurseSubmodules", "false"},
		{"fetch.writeCommitGraph", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"advice.detachedHead", "false"},
		{"protocol.version", "2"},
		// Readers are several processes: what each may cache is bounded.
		{"core.packedGitLimit", "256m"},
		{"core.deltaBaseCacheLimit", "16m"},
		{"pack.windowMemory", "64m"},
	}
}

// environment is clean but for PATH and what Windows needs to start programs: no variable of ours reaches git.
func (s *Store) environment(p program) []string {
	home := filepath.Join(s.private, "home")
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_ATTR_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GCM_INTERACTIVE=never",
	}
	for _, name := range []string{"SYSTEMROOT", "TEMP"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	if p.gitDir != "" {
		env = append(env, "GIT_DIR="+p.gitDir)
	}
	all := append(hardening(), p.settings...)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
	for i, c := range all {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, c.name), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, c.value))
	}
	return append(env, p.env...) // the last of one name wins
}

// command makes a process of its own group, which is killed as a whole when ctx ends.
func (s *Store) command(ctx context.Context, p program) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, p.args...)
	cmd.Env = s.environment(p)
	cmd.Dir = s.private
	cmd.Stdin = p.stdin
	if p.secret != nil {
		cmd.ExtraFiles = []*os.File{p.secret}
	}
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs git to its end and returns what it printed. The error is a *failure.
func (s *Store) run(ctx context.Context, p program) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := s.command(ctx, p)
	out := &capped{limit: maxOutput, full: cancel}
	complaints := &tail{limit: maxStderr}
	cmd.Stdout, cmd.Stderr = out, complaints
	err := cmd.Run()
	if out.over {
		return nil, &failure{cause: fmt.Errorf("more than %d MiB of output", maxOutput>>20)}
	}
	if err == nil {
		return out.data.Bytes(), nil
	}
	f := &failure{stderr: complaints.String(), exit: -1}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		f.cause = context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		f.exit = exit.ExitCode()
	default:
		f.cause = err
	}
	return nil, f
}

// local runs git in the mirror without any way to a network.
func (s *Store) local(ctx context.Context, gitDir string, args ...string) ([]byte, error) {
	return s.run(ctx, program{gitDir: gitDir, args: args, env: []string{"GIT_ALLOW_PROTOCOL=none"}})
}

// capped keeps up to limit bytes and ends the program that prints more.
type capped struct {
	data  bytes.Buffer
	limit int
	over  bool
	full  func()
}

func (c *capped) Write(p []byte) (int, error) {
	if c.data.Len()+len(p) > c.limit {
		c.over = true
		c.full()
		return 0, io.ErrShortWrite
	}
	return c.data.Write(p)
}

// tail keeps the first half and the last half of limit: the reason stands at one of the ends.
type tail struct {
	head, end []byte
	limit     int
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if room := t.limit/2 - len(t.head); room > 0 {
		take := min(room, len(p))
		t.head = append(t.head, p[:take]...)
		p = p[take:]
	}
	t.end = append(t.end, p...)
	if over := len(t.end) - t.limit/2; over > 0 {
		t.end = append([]byte(nil), t.end[over:]...)
	}
	return n, nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.head)+string(t.end), "?") }
