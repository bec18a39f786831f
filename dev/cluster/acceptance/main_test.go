// Package acceptance tests the devcluster binary from outside: clusters are started
// as users start them and asked through their API. It imports nothing of ours.
package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// shared is the cluster of all tests that do no harm to it.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "devcluster-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	shared, err = start("shared", dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.stop()
	return m.Run()
}

// cluster is a running `devcluster up --foreground`.
type cluster struct {
	name, dir, kubeconfig, server string
	took                          time.Duration
	cmd                           *exec.Cmd
	exited                        chan struct{}
	config                        *rest.Config
	client                        *kubernetes.Clientset
}

var readyLine = regexp.MustCompile(`^ready kubeconfig=(\S+) server=(\S+) took=(\S+)$`)

func binary() (string, error) {
	if b := os.Getenv("DEVCLUSTER_BINARY"); b != "" {
		return b, nil
	}
	script, err := filepath.Abs("../../devcluster")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(script, "--build-only")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func start(name, dir string) (*cluster, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	c := &cluster{name: name, dir: filepath.Join(dir, name), exited: make(chan struct{})}
	c.cmd = exec.Command(bin, "up", "--foreground", "--name", name, "--dir", c.dir, "--parent-pid", fmt.Sprint(os.Getpid()))
	var log strings.Builder
	c.cmd.Stderr = &log
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		m := readyLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		go func() {
			defer close(c.exited)
			_ = c.cmd.Wait()
		}()
		c.kubeconfig, c.server = m[1], m[2]
		if c.took, err = time.ParseDuration(m[3]); err != nil {
			return nil, err
		}
		return c, c.connect()
	}
	_ = c.cmd.Wait()
	return nil, fmt.Errorf("cluster %s: not ready:\n%s", name, log.String())
}

func (c *cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	c.config = config
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

func (c *cluster) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	<-c.exited
}

// devcluster runs a command on the cluster and returns its output.
func (c *cluster) devcluster(t *testing.T, args ...string) string {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "--name", c.name, "--dir", c.dir)
	out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("devcluster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

type status struct {
	PID        int
	PSSKiB     int64
	Components []struct {
		Name, State string
		PID, Starts int
	}
}

func (c *cluster) status(t *testing.T) status {
	t.Helper()
	var s status
	if err := json.Unmarshal([]byte(c.devcluster(t, "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s status) pid(t *testing.T, component string) int {
	t.Helper()
	for _, c := range s.Components {
		if c.Name == component {
			return c.PID
		}
	}
	t.Fatalf("status has no component %s", component)
	return 0
}

// own starts a cluster for one test.
func own(t *testing.T, name string) *cluster {
	t.Helper()
	c, err := start(name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	return c
}

var namespaces atomic.Int64

// namespace makes a namespace that goes with the test.
func (c *cluster) namespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", namespaces.Add(1))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended here.
		_ = c.client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	return name
}

// eventually waits until check returns nil.
func eventually(t *testing.T, limit time.Duration, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %v", limit, last)
		case <-tick.C:
		}
	}
}
