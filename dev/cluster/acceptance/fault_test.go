package acceptance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestAPIFaults(t *testing.T) {
	c := own(t, "api-faults")
	list := func(ctx context.Context) error {
		_, err := c.client.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
		return err
	}
	others := func() {
		t.Helper()
		if _, err := c.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("another kind: %v", err)
		}
		if _, err := c.client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("another kind: %v", err)
		}
	}
	c.devcluster(t, "fault", "api", "--kind", "deployments.apps", "--answer", "429")
	// Without client-go, which tries a 429 again by itself.
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(c.server + "/apis/apps/v1/namespaces/default/deployments")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("429: %s, headers %v", resp.Status, resp.Header)
	}
	others()
	c.devcluster(t, "fault", "api", "--kind", "deployments.apps", "--answer", "403", "--verb", "create,update")
	if err := list(t.Context()); err != nil {
		t.Errorf("a verb without a fault: %v", err)
	}
	_, err = c.client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 1, podTemplate(goodImage, nil)), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("403: %v", err)
	}
	c.devcluster(t, "fault", "api", "--kind", "deployments.apps", "--answer", "timeout")
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := list(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("timeout: %v", err)
	}
	others()
	if out := c.devcluster(t, "status"); !strings.Contains(out, "deployments.apps answers timeout") {
		t.Errorf("status does not show the fault:\n%s", out)
	}
	c.devcluster(t, "fault", "clear")
	if err := list(t.Context()); err != nil {
		t.Errorf("after clear: %v", err)
	}
	c.devcluster(t, "fault", "api", "--kind", "deployments.apps", "--answer", "500", "--for", "1s")
	if err := list(t.Context()); !apierrors.IsInternalError(err) {
		t.Errorf("500: %v", err)
	}
	eventually(t, 5*time.Second, list)
}

func TestComponentFaults(t *testing.T) {
	c := own(t, "faults")
	version := func(ctx context.Context) error {
		return c.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}
	// Killed: connections are refused; data is there again after the restart.
	if _, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.devcluster(t, "fault", "kill", "kube-apiserver")
	c.devcluster(t, "fault", "kill", "etcd")
	u, err := url.Parse(c.server)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		_ = conn.Close()
		t.Error("a killed API server takes connections")
	}
	c.devcluster(t, "fault", "restart", "etcd")
	c.devcluster(t, "fault", "restart", "kube-apiserver")
	eventually(t, 30*time.Second, version)
	if _, err := c.client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	// Frozen: connections are taken, nothing is answered.
	c.devcluster(t, "fault", "freeze", "kube-apiserver")
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := version(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen: %v", err)
	}
	c.devcluster(t, "fault", "thaw", "kube-apiserver")
	eventually(t, 30*time.Second, version)

	// Killed for a while: comes back by itself and does its work again.
	before := c.status(t).pid(t, "kwok")
	c.devcluster(t, "fault", "kill", "kwok", "--restart-after", "1s")
	c.devcluster(t, "fault", "kill", "kube-controller-manager")
	c.devcluster(t, "fault", "kill", "kube-scheduler")
	c.devcluster(t, "fault", "clear")
	if _, err := c.client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 2, podTemplate(goodImage, nil)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 60*time.Second, func(ctx context.Context) error {
		d, err := c.client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != 2 {
			err = fmt.Errorf("status %+v", d.Status)
		}
		return err
	})
	if after := c.status(t).pid(t, "kwok"); after == before {
		t.Errorf("kwok still has pid %d", after)
	}
}
