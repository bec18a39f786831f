package env

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopLimit is how long a cluster may take to end before it is killed; its processes
// die with the killed one.
const stopLimit = 20 * time.Second

// process is a running `devcluster up --foreground`.
type process struct {
	script, name, dir string
	cmd               *exec.Cmd
	exited            chan struct{}
	once              sync.Once
}

var readyLine = regexp.MustCompile(`^ready kubeconfig=(\S+) `)

// start starts a cluster in a temporary directory and waits until it is ready. The
// cluster watches this process and ends with it, however it ends.
func start() (*Kube, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(root, "dev", "devcluster")
	// On its own first, so that the progress of a first build is seen.
	build := exec.Command(script, "--build-only")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("devcluster: build: %w", err)
	}
	dir, err := os.MkdirTemp("", "lockstep-cluster-")
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	p := &process{script: script, name: filepath.Base(dir), dir: dir, exited: make(chan struct{})}
	kubeconfig, err := p.up()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c, err := connect(kubeconfig)
	if err != nil {
		p.stop()
		return nil, err
	}
	c.process = p
	return c, nil
}

func (p *process) up() (kubeconfig string, err error) {
	p.cmd = exec.Command(p.script, "up", "--foreground", "--name", p.name, "--dir", p.dir, "--parent-pid", fmt.Sprint(os.Getpid()))
	// A file, not a pipe: the log is read only when the start fails, and a pipe that
	// nobody empties would block the supervisor.
	log, err := os.Create(filepath.Join(p.dir, "supervisor.log"))
	if err != nil {
		return "", fmt.Errorf("log: %w", err)
	}
	defer func() { _ = log.Close() }()
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("devcluster: output: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return "", fmt.Errorf("devcluster: start: %w", err)
	}
	lines := bufio.NewScanner(out)
	for kubeconfig == "" && lines.Scan() {
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			kubeconfig = m[1]
		}
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	if kubeconfig == "" {
		<-p.exited
		text, _ := os.ReadFile(log.Name())
		return "", fmt.Errorf("devcluster: not ready:\n%s", strings.TrimSpace(string(text)))
	}
	return kubeconfig, nil
}

func (p *process) stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
		case <-time.After(stopLimit):
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
		_ = os.RemoveAll(p.dir)
	})
}
