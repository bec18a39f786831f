package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/internal/webhook"
)

const (
	// secretFresh is how long a webhook secret that was read is used without asking again.
	secretFresh = 10 * time.Second
	// secretStale is how long it is used while the cluster does not answer: an event need not be lost for that.
	secretStale = 10 * time.Minute
	// secretWithin bounds the question: forges wait for an answer.
	secretWithin = 2 * time.Second
)

// errSecretFormat says that the Secret holds something else than text; the cause would quote it.
var errSecretFormat = errors.New("secret argocd-secret: its data is not readable")

// webhookSecrets reads the webhook keys of argocd-secret when an event comes. A Secret of that name is not watched: it
// holds more than this process needs to know.
type webhookSecrets struct {
	client    dynamic.Interface
	namespace string

	mu    sync.Mutex
	value webhook.Secrets
	at    time.Time
	// tried is when it was asked for last, with or without success.
	tried time.Time
}

// get returns the secrets, empty when none is configured. It is an error when that is not known.
func (s *webhookSecrets) get(ctx context.Context) (webhook.Secrets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := !s.at.IsZero()
	if known && time.Since(s.at) < secretFresh || known && time.Since(s.tried) < secretWithin && time.Since(s.at) < secretStale {
		return s.value, nil
	}
	// Not the request's context alone: a sender that hangs up must not make the others wait for nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), secretWithin)
	defer cancel()
	value, err := s.read(ctx)
	s.tried = time.Now()
	switch {
	case err == nil:
		s.value, s.at = value, s.tried
	case errors.Is(err, errSecretFormat) || !known || time.Since(s.at) >= secretStale:
		return nil, err
	}
	return s.value, nil
}

func (s *webhookSecrets) read(ctx context.Context) (webhook.Secrets, error) {
	secrets := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(s.namespace)
	u, err := secrets.Get(ctx, "argocd-secret", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return webhook.Secrets{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s/argocd-secret: %w", s.namespace, err)
	}
	found := webhook.Secrets{}
	for _, key := range webhook.Keys() {
		text, _, err := unstructured.NestedString(u.Object, "data", key)
		if err != nil {
			return nil, errSecretFormat
		}
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errSecretFormat
		}
		found[key] = strings.TrimRight(string(value), "\r\n") // what echo and editors put at the end
	}
	return found, nil
}
