// Package env gives tests a real Kubernetes: the one that $LOCKSTEP_TEST_KUBECONFIG
// names, or a local cluster that dev/devcluster starts. Only tests import it. It may
// depend on client-go and test/local, never on other packages of ours.
package env

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
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

	"github.com/lockstep-cd/lockstep/test/local"
)

// KubeconfigVariable names a kubeconfig of a cluster to use instead of an own one. Its
// contents are at the tests' mercy.
const KubeconfigVariable = "LOCKSTEP_TEST_KUBECONFIG"

// Kube is a running cluster.
type Kube struct {
	kubeconfig string
	config     *rest.Config
	// own is nil for a cluster that somebody else runs; dir has its files.
	own *local.Cluster
	dir string
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
	if c.own == nil {
		tb.Fatalf("devcluster %s: the cluster of $%s is not ours", strings.Join(args, " "), KubeconfigVariable)
	}
	if _, err := c.own.Run(tb.Context(), args...); err != nil {
		tb.Fatal(err)
	}
}

// Stop ends an own cluster and removes its data; a second call does nothing.
func (c *Kube) Stop() {
	if c.own != nil {
		_ = c.own.Stop() // a cluster that a test has broken may end with an error
		_ = os.RemoveAll(c.dir)
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

// start starts a cluster in a temporary directory and waits until it is ready. It ends with this process, however that
// ends.
func start() (*Kube, error) {
	ctx := context.Background() // the cluster outlives the test that is the first to need it
	root, err := local.Root()
	if err != nil {
		return nil, err
	}
	// On its own first, so that the progress of a first build is seen.
	if err := local.BuildCluster(ctx, root); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lockstep-cluster-")
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	own, err := local.StartCluster(ctx, root, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c, err := connect(own.Kubeconfig)
	if err != nil {
		return nil, errors.Join(err, own.Stop(), os.RemoveAll(dir))
	}
	c.own, c.dir = own, dir
	return c, nil
}

func connect(kubeconfig string) (*Kube, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	return &Kube{kubeconfig: kubeconfig, config: config}, nil
}
