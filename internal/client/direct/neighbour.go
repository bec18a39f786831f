package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/client"
	"github.com/lockstep-cd/lockstep/internal/handover"
)

// keepsMarks refuses an application whose ApplicationSet would take the marks of the hand-over off again: its controller
// writes labels and annotations as its template says, but those that spec.preservedFields names.
func (c *Client) keepsMarks(ctx context.Context, app *v1alpha1.Application) error {
	for _, owner := range app.OwnerReferences {
		if owner.Kind != "ApplicationSet" || !strings.HasPrefix(owner.APIVersion, v1alpha1.Group+"/") {
			continue
		}
		body, err := c.rest.Get().Namespace(app.Namespace).Resource("applicationsets").Name(owner.Name).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return c.explain(err, "applicationset "+app.Namespace+"/"+owner.Name)
		}
		var set struct {
			Spec struct {
				PreservedFields struct {
					Annotations []string `json:"annotations"`
					Labels      []string `json:"labels"`
				} `json:"preservedFields"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(body, &set); err != nil {
			return fmt.Errorf("applicationset %s/%s: %w", app.Namespace, owner.Name, err)
		}
		kept := set.Spec.PreservedFields
		missing := slices.DeleteFunc(handover.Marks(), func(mark string) bool { return slices.Contains(kept.Annotations, mark) })
		if len(missing) == 0 && slices.Contains(kept.Labels, handover.ManagerLabel) {
			continue
		}
		return fmt.Errorf("application %s/%s: %w: ApplicationSet %s would take the marks of the hand-over off again; add to its spec.preservedFields "+
			"the label %s and the annotations %s", app.Namespace, app.Name, client.ErrRefused, owner.Name, handover.ManagerLabel, strings.Join(handover.Marks(), ", "))
	}
	return nil
}

// holder is what was last seen of the lease by which a Lockstep works in a namespace.
type holder struct {
	renewed string
	at      time.Time
}

// working tells whether a Lockstep works in the namespace: its lease has a holder who renews it. Clocks of two machines are
// never compared.
func (c *Client) working(ctx context.Context, namespace string, last *holder) (bool, error) {
	body, err := c.rest.Get().AbsPath("/apis/coordination.k8s.io/v1/namespaces", namespace, "leases", "lockstep").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, c.explain(err, "lease "+namespace+"/lockstep")
	}
	var lease struct {
		Spec struct {
			HolderIdentity       string `json:"holderIdentity"`
			LeaseDurationSeconds int    `json:"leaseDurationSeconds"`
			RenewTime            string `json:"renewTime"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &lease); err != nil {
		return false, fmt.Errorf("lease %s/lockstep: %w", namespace, err)
	}
	if lease.Spec.HolderIdentity == "" {
		return false, nil
	}
	if lease.Spec.RenewTime != last.renewed {
		last.renewed, last.at = lease.Spec.RenewTime, time.Now()
	}
	return time.Since(last.at) <= time.Duration(lease.Spec.LeaseDurationSeconds)*time.Second, nil
}
