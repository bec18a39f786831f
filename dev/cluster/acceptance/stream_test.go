package acceptance

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

func TestExec(t *testing.T) {
	ns := shared.namespace(t)
	createPod(t, ns, pod("good", goodImage, nil))
	waitForPod(t, ns, "good", podReady)
	req := shared.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(ns).Name("good").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: []string{"cat", "/etc/hostname"}, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	websocket, err := remotecommand.NewWebSocketExecutor(shared.config, "GET", req.URL().String())
	if err != nil {
		t.Fatal(err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(shared.config, "POST", req.URL())
	if err != nil {
		t.Fatal(err)
	}
	for name, executor := range map[string]remotecommand.Executor{"websocket": websocket, "spdy": spdy} {
		var out, errs bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
		if err != nil || !strings.Contains(out.String(), "command: cat /etc/hostname") || !strings.Contains(out.String(), "nothing was executed") {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}

// TestExposedWebhook: the API server calls a local process through its Service.
func TestExposedWebhook(t *testing.T) {
	ns := shared.namespace(t)
	cert, ca := serverCertificate(t, "hook."+ns+".svc")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "refused by the local process"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	shared.devcluster(t, "expose", "hook", port, "--namespace", ns)
	shared.devcluster(t, "expose", "hook", port, "--namespace", ns) // again changes nothing

	none := admissionregistrationv1.SideEffectClassNone
	hooks := shared.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook-" + ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "hook.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &none,
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca,
				Service:  &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "hook"},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
			}},
		}},
	}
	if _, err := hooks.Create(t.Context(), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hooks.Delete(context.Background(), hook.Name, metav1.DeleteOptions{}) })
	eventually(t, 15*time.Second, func(ctx context.Context) error {
		_, err := shared.client.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "refused by the local process") {
			return fmt.Errorf("create: %w", err)
		}
		return nil
	})
}

func serverCertificate(t *testing.T, host string) (cert tls.Certificate, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
