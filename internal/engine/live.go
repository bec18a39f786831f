package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-cd/lockstep/internal/assess"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// live is what is kept of a live object.
func (c *configuration) live(u *unstructured.Unstructured) cluster.Live {
	l := cluster.Identity(u)
	c.marks.read(u, &l)
	l.Entry = compare.EntryHash(u.GetManagedFields())
	if l.Entry == "" {
		l.Content = contentOf(u)
		l.ByArgoCD = l.ByLabel && ownership.Wrote(u, ownership.ArgoCD, "metadata", "labels", c.marks.Label)
	}
	l.Health, l.HasHealth = c.health.Of(context.Background(), u) // scripts have bounds of their own
	facts := assess.FactsOf(u)
	l.Images, l.URLs = facts.Images, facts.URLs
	return l
}

// contentOf hashes what of an object could differ from a declaration: for objects that we have not applied yet, where no
// ownership entry tells of changes.
func contentOf(u *unstructured.Unstructured) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	rest := make(map[string]any, len(u.Object))
	for field, v := range u.Object {
		if field != "status" && field != "metadata" {
			rest[field] = v
		}
	}
	_ = enc.Encode(rest) // a hash does not fail to be written to
	_ = enc.Encode(u.GetLabels())
	_ = enc.Encode(u.GetAnnotations())
	return hex.EncodeToString(h.Sum(nil)[:12])
}
