package env_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-cd/lockstep/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }

func TestNamespaces(t *testing.T) {
	c := env.Cluster(t)
	client, err := kubernetes.NewForConfig(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	a, b := env.Namespace(t, c), env.Namespace(t, c)
	if a == b {
		t.Fatalf("two namespaces have the name %s", a)
	}
	for _, ns := range []string{a, b} {
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if env.Cluster(t) != c {
		t.Error("the second call returned another cluster")
	}
}

func TestOwnClusterTakesFaultsAndStops(t *testing.T) {
	c := env.NewCluster(t)
	client, err := kubernetes.NewForConfig(c.REST())
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); err != nil {
		t.Fatal(err)
	}
	c.Fault(t, "api", "--kind", "configmaps", "--answer", "403")
	if err := list(); err == nil {
		t.Error("no error with a fault")
	}
	c.Fault(t, "clear")
	if err := list(); err != nil {
		t.Error(err)
	}
	c.Stop()
	if err := list(); err == nil {
		t.Error("no error after the end")
	}
	if _, err := os.Stat(c.Kubeconfig()); !os.IsNotExist(err) {
		t.Errorf("kubeconfig after the end: %v", err)
	}
}
