package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-cd/lockstep/bench/kube"
	"github.com/lockstep-cd/lockstep/bench/workload"
	"github.com/lockstep-cd/lockstep/internal/install"
)

// stopLimit is how long a process may take to end before it is killed.
const stopLimit = 20 * time.Second

// cluster is a running local cluster of its own.
type cluster struct {
	kubeconfig string
	client     rest.Interface
	process    *process
}

var readyLine = regexp.MustCompile(`^ready kubeconfig=(\S+) `)

// startCluster starts a fresh cluster below dir. It ends with stop, or with this process however that ends.
func startCluster(ctx context.Context, root, dir string) (*cluster, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster: directory: %w", err)
	}
	cmd := exec.Command(filepath.Join(root, "dev", "devcluster"), "up", "--foreground",
		"--name", filepath.Base(dir), "--dir", dir, "--parent-pid", fmt.Sprint(os.Getpid()))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cluster: output: %w", err)
	}
	p, err := startProcess(ctx, "cluster", cmd, filepath.Join(dir, "supervisor.log"))
	if err != nil {
		return nil, err
	}
	c := &cluster{process: p}
	if c.kubeconfig = readReady(out); c.kubeconfig == "" {
		return nil, fmt.Errorf("cluster: not ready: %w", p.stop())
	}
	if c.client, err = kube.Client(c.kubeconfig); err != nil {
		_ = p.stop()
		return nil, err
	}
	return c, nil
}

func readReady(out io.Reader) string {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	return ""
}

func (c *cluster) stop() error { return c.process.stop() }

// prepare makes what must be there before the clock starts: our definitions, the project, the destination namespaces and
// the service account that every namespace gets.
func (c *cluster) prepare(ctx context.Context, spec workload.Spec) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", c.kubeconfig, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: client: %w", c.kubeconfig, err)
	}
	if _, err := install.All(ctx, client, install.Options{Namespace: spec.ControlNamespace}); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	for n := range spec.Namespaces {
		body, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": workload.NamespaceName(n)},
		})
		if err != nil {
			return err
		}
		if err := c.client.Post().AbsPath("/api/v1/namespaces").Body(body).Do(ctx).Error(); err != nil {
			return fmt.Errorf("namespace %s: create: %w", workload.NamespaceName(n), err)
		}
	}
	account, err := workload.KindOf("serviceaccount")
	if err != nil {
		return err
	}
	return until(ctx, 30*time.Second, func(ctx context.Context) error {
		for n := range spec.Namespaces {
			if err := c.client.Get().AbsPath(account.ObjectPath(workload.NamespaceName(n), "default")).Do(ctx).Error(); err != nil {
				return err
			}
		}
		return nil
	})
}

// until repeats do until it has no error, and gives its last error when the time is over.
func until(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, last)
		case <-tick.C:
		}
	}
}

// process is a program that was started and will be stopped.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
	err    error
}

// startProcess starts cmd in a session of its own, with what it says on its error stream in a file.
func startProcess(_ context.Context, name string, cmd *exec.Cmd, log string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: log: %w", name, err)
	}
	defer file.Close()
	cmd.Stderr = file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: start: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the process to end, waits, and kills it when that takes too long. The error has the end of its log.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("%s: did not end within %s", p.name, stopLimit)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w: %s", p.name, p.err, p.lastLines())
	}
	return nil
}

// lastLines are the end of the log.
func (p *process) lastLines() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
