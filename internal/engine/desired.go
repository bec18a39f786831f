package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// maxObject is the size of one object that the API server takes, in bytes.
const maxObject = 1 << 20 * 3 / 2

// kinds answers how a kind is reached.
type kindFinder interface {
	Kind(gvk schema.GroupVersionKind) (cluster.Resource, error)
}

// preparation is what making a rendering ready needs.
type preparation struct {
	app     *v1alpha1.Application
	rules   project.Rules
	kinds   kindFinder
	key     []byte // for the hashes
	seal    func([]byte) []byte
	cluster project.Cluster
	marks   marks
}

// prepare makes a rendering ready for its destination: cleaned, in a namespace, marked, hashed.
func (p preparation) prepare(r *rendering) (*desiredSet, error) {
	set := &desiredSet{byKey: map[manifest.Key]int{}, digest: r.digest, marks: p.marks}
	scopes := ownScopes(r.objects)
	names := map[string]int{}
	for i, o := range r.objects {
		d, err := p.one(o, scopes, r.generated[i])
		if err != nil {
			return nil, err
		}
		if isHook(d.Object.Unstructured) {
			if _, err := deadline(&d); err != nil && d.problem == nil {
				d.problem = at(o, err)
			}
			set.hooks = append(set.hooks, d)
			continue
		}
		d.nameMade(names)
		if at, twice := set.byKey[d.key]; twice {
			set.warnings = append(set.warnings, v1alpha1.ApplicationCondition{
				Type: v1alpha1.ConditionRepeatedResourceWarning,
				Message: fmt.Sprintf("%s is declared twice, in %s and in %s; the last one is used", d.key,
					set.objects[at].Origin, d.Origin),
			})
			set.objects[at] = d
			continue
		}
		set.byKey[d.key] = len(set.objects)
		set.objects = append(set.objects, d)
	}
	for i := range set.hooks {
		if gk := set.hooks[i].key.GroupKind(); set.hooks[i].problem == nil && set.hooks[i].resource.Resource != "" && !slices.Contains(set.kinds, gk) {
			set.kinds = append(set.kinds, gk)
		}
	}
	for i := range set.objects {
		gk := set.objects[i].key.GroupKind()
		set.stale = set.stale || set.objects[i].resource.Resource == ""
		if set.objects[i].problem == nil && set.objects[i].resource.Resource != "" && !slices.Contains(set.kinds, gk) {
			set.kinds = append(set.kinds, gk)
		}
	}
	return set, nil
}

// ownScopes are the kinds that CRDs in the rendering itself define, and whether they are namespaced: a custom resource may
// come with its definition.
func ownScopes(objects []manifest.Object) map[schema.GroupKind]bool {
	scopes := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		scopes[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
	}
	return scopes
}

func (p preparation) one(o manifest.Object, scopes map[schema.GroupKind]bool, generated []job.Path) (desired, error) {
	clean, err := apply.Clean(o.Unstructured)
	if err != nil {
		return desired{}, at(o, err)
	}
	d := desired{Object: manifest.Object{Unstructured: clean, Origin: o.Origin}, generated: folded(o.Unstructured, generated)}
	gvk := clean.GroupVersionKind()
	d.resource, err = p.kinds.Kind(gvk)
	if errors.Is(err, cluster.ErrNoKind) {
		namespaced, own := scopes[gvk.GroupKind()]
		d.resource = cluster.Resource{Namespaced: namespaced || !own, Kind: gvk.Kind}
		d.unserved = !own
	} else if err != nil {
		return desired{}, err
	}
	if d.resource.Namespaced && clean.GetNamespace() == "" {
		clean.SetNamespace(p.app.Spec.Destination.Namespace)
	} else if !d.resource.Namespaced && clean.GetNamespace() != "" {
		clean.SetNamespace("")
	}
	d.key = manifest.KeyOf(clean)
	if d.unserved && !option("SkipDryRunOnMissingResource", objectOptions(&d), syncOptions(p.app, &v1alpha1.SyncOperation{})) {
		d.problem = at(o, err)
	} else {
		d.problem = p.permitted(d, o)
		d.unserved = d.unserved && d.problem == nil
	}
	d.made = d.resource.Resource != "" && !d.resource.Patchable || d.key.Name == ""
	if d.key.Name == "" && d.GetGenerateName() == "" && !d.asks() && d.problem == nil {
		d.problem = at(o, errors.New("metadata.name is missing"))
	}
	if !d.asks() { // else nothing stays that could be found by its mark
		p.marks.put(clean, p.app)
	}
	err = p.encode(&d, o)
	return d, err
}

// asks tells that the object is a question to the API server, of a kind of which nothing stays: an access review and the like.
func (d *desired) asks() bool {
	return d.made && !d.resource.Patchable && !d.resource.Watchable && d.resource.Resource != ""
}

// unsteered is u without annotations, which steer us and nobody else: access reviews refuse all metadata.
func unsteered(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetAnnotations(nil)
	if meta, _ := u.Object["metadata"].(map[string]any); len(meta) == 0 {
		delete(u.Object, "metadata")
	}
	return u
}

// applied tells that the object is applied: it has a name, and its kind knows patches.
func (d *desired) applied() bool { return !d.made }

// target is how the object is reached; what is made and not applied is reached as if its kind knew no patch.
func (d *desired) target() apply.Target {
	t := target(d.resource)
	t.Patchable = t.Patchable && !d.made
	return t
}

// nameMade gives an object whose name the API server makes up a name for us, by which several of one kind are told apart. No
// real object can have it.
func (d *desired) nameMade(taken map[string]int) {
	if !d.made || d.key.Name != "" {
		return
	}
	base := d.key.GroupKind().String() + d.key.Namespace + d.GetGenerateName()
	d.key.Name = d.GetGenerateName() + "*"
	if taken[base]++; taken[base] > 1 {
		d.key.Name += strconv.Itoa(taken[base])
	}
	d.Object.SetName(d.key.Name)
}

// permitted asks the project's rules, and says what else makes the object impossible.
func (p preparation) permitted(d desired, o manifest.Object) error {
	gk := metav1.GroupKind{Group: d.key.Group, Kind: d.key.Kind}
	if err := p.rules.Kind(gk, d.key.Name, d.resource.Namespaced); err != nil {
		return at(o, err)
	}
	if !d.resource.Namespaced {
		return nil
	}
	if d.key.Namespace == "" {
		return at(o, errors.New("has no namespace; set it in the manifest or in spec.destination.namespace"))
	}
	if err := p.rules.Destination(p.cluster, d.key.Namespace); err != nil {
		return at(o, err)
	}
	return nil
}

// at puts the place in the source before an error about an object.
func at(o manifest.Object, err error) error {
	name := o.GetKind() + "/" + o.GetName()
	if place := o.Origin.String(); place != "" {
		return fmt.Errorf("%s: %s: %w", place, name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (p preparation) encode(d *desired, o manifest.Object) error {
	sent := d.Object.Unstructured
	if d.asks() {
		sent = unsteered(sent)
	}
	body, err := json.Marshal(sent.Object)
	if err != nil {
		return at(o, err)
	}
	if len(body) > maxObject && d.problem == nil {
		d.problem = at(o, fmt.Errorf("is %.1f MB large; the API server takes 1.5 MB", float64(len(body))/1e6))
	}
	stable := body
	if len(d.generated) > 0 {
		if stable, err = json.Marshal(without(d.Object.Unstructured, d.generated).Object); err != nil {
			return at(o, err)
		}
	}
	mac := hmac.New(sha256.New, p.key)
	mac.Write(stable)
	d.hash = hex.EncodeToString(mac.Sum(nil)[:12])
	d.body = body
	if d.key.Group == "" && d.key.Kind == "Secret" {
		d.body, d.sealed = p.seal(body), true
		delete(d.Object.Unstructured.Object, "data")
	} else {
		slim(d.Object.Unstructured)
	}
	return nil
}

// slim drops from the object what only its body needs, to keep the memory of an application small.
func slim(u *unstructured.Unstructured) {
	if u.GetKind() == "CustomResourceDefinition" {
		spec, _ := u.Object["spec"].(map[string]any)
		u.Object["spec"] = map[string]any{"group": spec["group"], "names": spec["names"], "scope": spec["scope"]}
		return
	}
	for field := range u.Object {
		switch field {
		case "apiVersion", "kind", "metadata":
		default:
			delete(u.Object, field)
		}
	}
}

func isHook(u *unstructured.Unstructured) bool { return plan.IsHook(u.GetAnnotations()) }
