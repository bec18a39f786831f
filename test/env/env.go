// Package env gives tests a real Kubernetes: the one that $LOCKSTEP_TEST_KUBECONFIG
// names, or a local cluster that dev/devcluster starts. Only tests import it. It may
// depend on client-go, never on other packages of ours.
package env

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// KubeconfigVariable names a kubeconfig of a cluster to use instead of an own one. Its
// contents are at the tests' mercy.
const KubeconfigVariable = "LOCKSTEP_TEST_KUBECONFIG"

// Kube is a running cluster.
type Kube struct {
	kubeconfig string
	config     *rest.Config
	// process is nil for a cluster that somebody else runs.
	process *process
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Kube) Kubeconfig() string { return c.kubeconfig }

// REST is a configuration of an administrator's client without a client-side rate
// limit. Each call returns a copy.
func (c *Kube) REST() *rest.Config { return rest.CopyConfig(c.config) }

// Fault runs `devcluster fault` with args on the cluster, for example
//
//	c.Fault(tb, "kill", "kube-apiserver", "--restart-after", "5s")
//	c.Fault(tb, "api", "--kind", "deployments.apps", "--answer", "429", "--for", "30s")
//	c.Fault(tb, "clear")
//
// It fails the test when the command fails or the cluster is not an own one.
func (c *Kube) Fault(tb testing.TB, args ...string) {
	tb.Helper()
	c.run(tb, append([]string{"fault"}, args...))
}

// Expose makes a Service in the cluster that leads to a process on 127.0.0.1:port.
func (c *Kube) Expose(tb testing.TB, namespace, name string, port int) {
	tb.Helper()
	c.run(tb, []string{"expose", name, fmt.Sprint(port), "--namespace", namespace})
}

func (c *Kube) run(tb testing.TB, args []string) {
	tb.Helper()
	if c.process == nil {
		tb.Fatalf("devcluster %s: the cluster of $%s is not ours", strings.Join(args, " "), KubeconfigVariable)
	}
	args = append(args, "--name", c.process.name, "--dir", c.process.dir)
	out, err := exec.CommandContext(tb.Context(), c.process.script, args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("devcluster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Stop ends an own cluster and removes its data; a second call does nothing.
func (c *Kube) Stop() {
	if c.process != nil {
		c.process.stop()
	}
}

// suite holds the cluster that the tests of one binary share. It is the one piece of
// process-wide state: testing offers no other place that outlives a test.
type suite struct {
	mu      sync.Mutex
	cluster *Kube
	err     error
}

var shared suite

// Main runs the tests of a package and ends the shared cluster afterwards:
//
//	func TestMain(m *testing.M) { os.Exit(env.Main(m)) }
//
// Without it the cluster ends with the test process, but its directory stays behind.
func Main(m *testing.M) int {
	defer shared.stop()
	return m.Run()
}

func (s *suite) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.Stop()
	}
}

func (s *suite) get() (*Kube, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil || s.err != nil {
		return s.cluster, s.err
	}
	if path := os.Getenv(KubeconfigVariable); path != "" {
		s.cluster, s.err = connect(path)
	} else {
		s.cluster, s.err = start()
	}
	return s.cluster, s.err
}

// Cluster returns the cluster that all tests of the process share; the first call
// starts it. With -short the test is skipped.
func Cluster(tb testing.TB) *Kube {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a cluster")
	}
	c, err := shared.get()
	if err != nil {
		tb.Fatalf("shared cluster: %v", err)
	}
	return c
}

// NewCluster starts a cluster for one test, for faults and for whatever would disturb
// others. It ends with the test.
func NewCluster(tb testing.TB) *Kube {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a cluster")
	}
	c, err := start()
	if err != nil {
		tb.Fatalf("cluster: %v", err)
	}
	tb.Cleanup(c.Stop)
	return c
}

// Namespace makes a namespace with an unused name; it is deleted when the test ends.
func Namespace(tb testing.TB, c *Kube) string {
	tb.Helper()
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		tb.Fatalf("namespace: client: %v", err)
	}
	var random [4]byte
	_, _ = rand.Read(random[:])
	name := "test-" + hex.EncodeToString(random[:])
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(tb.Context(), ns, metav1.CreateOptions{}); err != nil {
		tb.Fatalf("namespace %s: create: %v", name, err)
	}
	tb.Cleanup(func() {
		// The test's context has ended by now. A cluster that a test has broken or
		// stopped takes its namespaces along, so nothing is reported.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			tb.Logf("namespace %s: delete: %v", name, err)
		}
	})
	// Pods need the service account, which comes a moment after the namespace.
	waitForServiceAccount(tb, client, name)
	return name
}

func waitForServiceAccount(tb testing.TB, client kubernetes.Interface, namespace string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("namespace %s: default service account: %v", namespace, err)
		case <-tick.C:
		}
	}
}

func connect(kubeconfig string) (*Kube, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	return &Kube{kubeconfig: kubeconfig, config: config}, nil
}

// moduleRoot is the nearest directory above that has the root module's dev/devcluster.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("module root: %w", err)
	}
	for {
		_, mod := os.Stat(filepath.Join(dir, "go.mod"))
		_, script := os.Stat(filepath.Join(dir, "dev", "devcluster"))
		if mod == nil && script == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("module root: no dev/devcluster in any directory above")
		}
		dir = parent
	}
}
