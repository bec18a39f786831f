package acceptance

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestTwoClusters: another one beside the shared one, each with its own objects.
func TestTwoClusters(t *testing.T) {
	c := own(t, "second")
	if c.server == shared.server {
		t.Fatalf("both serve at %s", c.server)
	}
	if _, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "only-here"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.client.CoreV1().ConfigMaps("default").Get(t.Context(), "only-here", metav1.GetOptions{}); err == nil {
		t.Error("an object of one cluster is in the other")
	}
	// Neither accepts the other's administrator.
	stranger := *c.config
	stranger.Host, stranger.CAData = shared.server, shared.config.CAData
	client, err := kubernetes.NewForConfig(&stranger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the administrator of one cluster is let into the other")
	}
}

// TestKilledSupervisorLeavesNothing: also frozen components go.
func TestKilledSupervisorLeavesNothing(t *testing.T) {
	c := own(t, "killed")
	pids := everyPID(c.status(t))
	c.devcluster(t, "fault", "freeze", "kube-scheduler")
	if err := syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectGone(t, pids, c.server)
}

// TestCallerDies: a cluster in the foreground ends with its caller, however that ends.
func TestCallerDies(t *testing.T) {
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "orphan")
	out := filepath.Join(t.TempDir(), "out")
	// The shell is the caller; it is killed, not asked.
	shell := exec.Command("sh", "-c", fmt.Sprintf("%s up --foreground --name orphan --dir %s >%s 2>&1; true", bin, dir, out))
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(context.Context) error {
		text, err := os.ReadFile(out)
		if err == nil && !strings.Contains(string(text), "ready kubeconfig=") {
			err = fmt.Errorf("output %q", text)
		}
		return err
	})
	c := &cluster{name: "orphan", dir: dir}
	st := c.status(t)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	server := strings.TrimPrefix(strings.Fields(string(text[strings.Index(string(text), "ready "):]))[2], "server=")
	if err := shell.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = shell.Wait()
	expectGone(t, append(everyPID(st), st.PID), server)
}

// TestUpAndDown: a cluster in the background, with data that is kept.
func TestUpAndDown(t *testing.T) {
	c := &cluster{name: "background", dir: filepath.Join(t.TempDir(), "background")}
	up := func() *kubernetes.Clientset {
		t.Helper()
		c.devcluster(t, "up", "--nodes", "1", "--keep")
		path := strings.TrimSpace(c.devcluster(t, "kubeconfig"))
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		c.server = config.Host
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	client := up()
	t.Cleanup(func() {
		bin, _ := binary()
		_ = exec.Command(bin, "down", "--name", c.name, "--dir", c.dir).Run()
	})
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Errorf("nodes %d, %v", len(nodes.Items), err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	st := c.status(t)
	c.devcluster(t, "down")
	expectGone(t, append(everyPID(st), st.PID), c.server)
	if out := c.devcluster(t, "down"); !strings.Contains(out, "not running") {
		t.Errorf("second down: %s", out)
	}
	client = up()
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "precious")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, "up", "--foreground", "--dir", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not a cluster's and not empty") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func everyPID(s status) []int {
	var pids []int
	for _, c := range s.Components {
		pids = append(pids, c.PID)
	}
	return pids
}

// expectGone waits until no process and no port is left.
func expectGone(t *testing.T, pids []int, server string) {
	t.Helper()
	if len(pids) < 5 {
		t.Fatalf("only %d processes known", len(pids))
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func(context.Context) error {
		for _, pid := range pids {
			// A dead process whose parent does not ask for it is gone for our purpose.
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && !strings.Contains(string(stat), ") Z ") {
				return fmt.Errorf("process %d lives: %.60s", pid, stat)
			}
		}
		conn, err := net.Dial("tcp", u.Host)
		if err == nil {
			_ = conn.Close()
			return fmt.Errorf("%s takes connections", u.Host)
		}
		return nil
	})
}
