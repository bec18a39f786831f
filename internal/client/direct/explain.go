package direct

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/lockstep-cd/lockstep/internal/cause"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/evidence"
	"github.com/lockstep-cd/lockstep/internal/health"
	"github.com/lockstep-cd/lockstep/internal/health/custom"
	"github.com/lockstep-cd/lockstep/internal/settings"
)

// Explain implements client.Explainer. The caller's rights are what it reads with.
func (c *Client) Explain(ctx context.Context, ref client.Ref) (client.Explanation, error) {
	app, err := c.Get(ctx, ref)
	if err != nil {
		return client.Explanation{}, err
	}
	rules, unread, err := c.rules(ctx, ref.Namespace)
	if err != nil {
		return client.Explanation{}, c.explain(err, "ConfigMap "+settings.ConfigMap)
	}
	finder, err := evidence.New(c.config, func() health.Rules { return rules })
	if err != nil {
		return client.Explanation{}, err
	}
	found, err := finder.Of(ctx, app)
	if err != nil {
		return client.Explanation{}, c.explain(err, "application "+ref.String())
	}
	found.Input.LastLine = func(namespace, pod, container string) string { return finder.LastLine(ctx, namespace, pod, container) }
	return client.Explanation{App: app, Causes: cause.OfApplication(app, found.Input), Unread: append(unread, found.Unread...)}, nil
}

// rules are what the settings of a namespace hold to be well, or why they could not be read.
func (c *Client) rules(ctx context.Context, namespace string) (health.Rules, []string, error) {
	core, err := corev1client.NewForConfig(c.config)
	if err != nil {
		return health.Rules{}, nil, err
	}
	cm, err := core.ConfigMaps(namespace).Get(ctx, settings.ConfigMap, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return health.Rules{}, nil, nil
	case apierrors.IsForbidden(err):
		return health.Rules{}, []string{"ConfigMap " + settings.ConfigMap + ": you may not read it; health is that without settings"}, nil
	case err != nil:
		return health.Rules{}, nil, err
	}
	data, _ := settings.Customizations(cm.Data) // who administers them is told by serve
	rules, _ := custom.Of(data)
	return rules.Rules, nil, nil
}

// explain gives an error of the API server or of the way to it the kind that callers know, and names the object.
func (c *Client) explain(err error, object string) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &status):
		return answered(err, status.Status(), object)
	}
	var op *net.OpError
	var dns *net.DNSError
	var wrapped *url.Error
	if errors.As(err, &op) || errors.As(err, &dns) || errors.As(err, &wrapped) {
		return fmt.Errorf("cluster %s: %w: %w", c.host, client.ErrUnreachable, innermost(err))
	}
	return fmt.Errorf("%s: %w", object, err)
}

// answered sorts what the API server said.
func answered(err error, status metav1.Status, object string) error {
	switch {
	case apierrors.IsNotFound(err) && kindUnknown(status):
		return client.ErrNotInstalled
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", object, client.ErrNotFound)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: %s", object, client.ErrForbidden, status.Message)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w", object, client.ErrUnauthenticated)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%s: %w: %s", object, client.ErrInvalid, status.Message)
	case apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return fmt.Errorf("%s: %w: %s", object, client.ErrUnreachable, status.Message)
	}
	return fmt.Errorf("%s: %w", object, err)
}

// kindUnknown tells a missing kind from a missing object: the answer to the former names no object.
func kindUnknown(status metav1.Status) bool {
	return status.Details == nil || status.Details.Name == ""
}

// innermost is the part of err that says what happened on the wire, with the address.
func innermost(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
