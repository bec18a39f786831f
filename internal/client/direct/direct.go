// Package direct is the form of internal/client that needs no server: with a kubeconfig it reads, watches and patches
// the custom resources themselves. What the caller may do is what the cluster's RBAC lets it do.
//
// It imports the API and the client interfaces, never the server.
package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
)

const (
	resource = "applications"
	// page is how many applications one request lists; 10,000 applications at once would be a very large answer.
	page = 500
	// tries is how often an operation is asked for when the application is written by others meanwhile.
	tries = 5
)

// Client implements client.Applications.
type Client struct {
	config *rest.Config
	rest   rest.Interface
	codec  runtime.ParameterCodec
	host   string
	// backoff is the first wait before a lost watch is taken up again; it doubles up to maxBackoff.
	backoff time.Duration
}

var _ client.Applications = (*Client)(nil)

// New makes a client for the cluster of config. It sends no request.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	gv := v1alpha1.GroupVersion()
	c := rest.CopyConfig(config)
	c.APIPath = "/apis"
	c.GroupVersion = &gv
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.QPS = -1 // the API server has fair limits of its own
	rc, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	return &Client{config: config, rest: rc, codec: runtime.NewParameterCodec(scheme), host: config.Host, backoff: 200 * time.Millisecond}, nil
}

// Get implements client.Reader.
func (c *Client) Get(ctx context.Context, ref client.Ref) (*v1alpha1.Application, error) {
	app := &v1alpha1.Application{}
	err := c.rest.Get().Namespace(ref.Namespace).Resource(resource).Name(ref.Name).Do(ctx).Into(app)
	if err != nil {
		return nil, c.explain(err, "application "+ref.String())
	}
	return clean(app), nil
}

// List implements client.Reader.
func (c *Client) List(ctx context.Context, q client.Query) ([]v1alpha1.Application, error) {
	apps, _, err := c.list(ctx, q)
	return apps, err
}

// list returns the applications and the resource version to watch from.
func (c *Client) list(ctx context.Context, q client.Query) ([]v1alpha1.Application, string, error) {
	opts := listOptions(q)
	opts.Limit = page
	var apps []v1alpha1.Application
	for {
		list := &v1alpha1.ApplicationList{}
		err := c.rest.Get().Namespace(q.Namespace).Resource(resource).VersionedParams(&opts, c.codec).Do(ctx).Into(list)
		if err != nil {
			return nil, "", c.explain(err, "applications")
		}
		for i := range list.Items {
			if wanted(q, &list.Items[i]) {
				apps = append(apps, *clean(&list.Items[i]))
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			sort.Slice(apps, func(i, j int) bool {
				a, b := &apps[i], &apps[j]
				return a.Namespace < b.Namespace || a.Namespace == b.Namespace && a.Name < b.Name
			})
			return apps, list.ResourceVersion, nil
		}
	}
}

func listOptions(q client.Query) metav1.ListOptions {
	opts := metav1.ListOptions{LabelSelector: q.Selector}
	if q.Name != "" {
		opts.FieldSelector = "metadata.name=" + q.Name
	}
	return opts
}

// wanted tells whether app is of the projects of q, which the API server can not select by.
func wanted(q client.Query, app *v1alpha1.Application) bool {
	project := app.Spec.Project
	if project == "" {
		project = "default"
	}
	return len(q.Projects) == 0 || slices.Contains(q.Projects, project)
}

// clean drops what no face shows and names the kind, which lists leave out.
func clean(app *v1alpha1.Application) *v1alpha1.Application {
	app.ManagedFields = nil
	app.APIVersion, app.Kind = v1alpha1.GroupVersion().String(), v1alpha1.ApplicationKind
	return app
}

// Start implements client.Operator. The request is written on the version that was looked at, so that of two callers one
// is refused. An operation without a name of who asks gets the one the cluster knows the caller by.
func (c *Client) Start(ctx context.Context, ref client.Ref, op v1alpha1.Operation) (client.Mark, error) {
	if op.InitiatedBy.Username == "" {
		op.InitiatedBy.Username = c.whoami(ctx)
	}
	for try := 1; ; try++ {
		app, err := c.Get(ctx, ref)
		if err != nil {
			return client.Mark{}, err
		}
		if why, busy := client.Busy(app); busy {
			return client.Mark{}, fmt.Errorf("application %s: %w: %s", ref, client.ErrInProgress, why)
		}
		mark := client.Mark{ID: uuid.NewString()}
		if state := app.Status.OperationState; state != nil {
			mark.Before = state.StartedAt.Time
		}
		err = c.patch(ctx, ref, map[string]any{
			"metadata":  map[string]any{"resourceVersion": app.ResourceVersion},
			"operation": mark.With(op),
		})
		if apierrors.IsConflict(err) && try < tries {
			continue // somebody wrote the application meanwhile: look again
		}
		return mark, c.explain(err, "application "+ref.String())
	}
}

// Terminate implements client.Operator.
func (c *Client) Terminate(ctx context.Context, ref client.Ref) error {
	for try := 1; ; try++ {
		app, err := c.Get(ctx, ref)
		if err != nil {
			return err
		}
		patch := map[string]any{"metadata": map[string]any{"resourceVersion": app.ResourceVersion}}
		state := app.Status.OperationState
		switch {
		case state != nil && !state.Phase.Completed():
			patch["status"] = map[string]any{"operationState": map[string]any{"phase": v1alpha1.OperationTerminating}}
		case app.Operation != nil:
			patch["operation"] = nil // nobody took it up: it is withdrawn
		default:
			return fmt.Errorf("application %s: %w", ref, client.ErrNothingRuns)
		}
		err = c.patch(ctx, ref, patch)
		if apierrors.IsConflict(err) && try < tries {
			continue
		}
		return c.explain(err, "application "+ref.String())
	}
}

// Refresh implements client.Operator.
func (c *Client) Refresh(ctx context.Context, ref client.Ref, hard bool) error {
	kind := "normal"
	if hard {
		kind = "hard"
	}
	err := c.patch(ctx, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"argocd.argoproj.io/refresh": kind,
		// Tells this request from an earlier one that is just being seen to.
		"argocd.argoproj.io/refresh-timestamp": time.Now().UTC().Format(time.RFC3339Nano),
	}}})
	return c.explain(err, "application "+ref.String())
}

// patch sends a merge patch. Its error is the API server's own.
func (c *Client) patch(ctx context.Context, ref client.Ref, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return c.rest.Patch(types.MergePatchType).Namespace(ref.Namespace).Resource(resource).Name(ref.Name).
		VersionedParams(&metav1.PatchOptions{FieldManager: "lockstep-cli"}, c.codec).Body(body).Do(ctx).Error()
}
