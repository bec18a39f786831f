package app

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// secretFresh is how long a webhook secret that was read is used.
const secretFresh = 10 * time.Second

// webhookSecret reads webhook.github.secret of argocd-secret.
type webhookSecret struct {
	client    dynamic.Interface
	namespace string

	mu    sync.Mutex
	value string
	at    time.Time
}

func (s *webhookSecret) get(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && time.Since(s.at) < secretFresh {
		return s.value, nil
	}
	secrets := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(s.namespace)
	u, err := secrets.Get(ctx, "argocd-secret", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.value, s.at = "", time.Now()
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(u.Object, "data", "webhook.github.secret")
	if err != nil {
		return "", fmt.Errorf("secret argocd-secret: is not readable") //nolint:err113 // the cause would quote the data
	}
	value, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("secret argocd-secret: webhook.github.secret is not readable")
	}
	s.value, s.at = string(value), time.Now()
	return s.value, nil
}
