package cluster

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// ErrNoKind says that the cluster does not serve a kind.
var ErrNoKind = errors.New("the cluster does not serve this kind")

// Resource is how a kind is reached.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// Patchable kinds can be applied; others can only be created.
	Patchable bool
	// Watchable kinds can be listed and watched.
	Watchable bool
}

// kinds knows what the cluster serves. It is read again when somebody asks for a kind that is not known, at most once a
// second, and after a CustomResourceDefinition changed.
type kinds struct {
	client discovery.DiscoveryInterface

	mu       sync.Mutex
	byGroup  map[schema.GroupKind][]Resource // preferred version first
	apis     []string
	version  string
	failed   map[schema.GroupVersion]error
	lastRead time.Time
	stale    bool
}

// minReread bounds how often unknown kinds make us ask the API server again.
const minReread = time.Second

func (k *kinds) find(gvk schema.GroupVersionKind) (Resource, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byGroup == nil || k.stale {
		if err := k.read(); err != nil && k.byGroup == nil {
			return Resource{}, err
		}
	}
	r, err := k.look(gvk)
	if err != nil && time.Since(k.lastRead) > minReread {
		if rerr := k.read(); rerr != nil {
			return Resource{}, rerr
		}
		r, err = k.look(gvk)
	}
	return r, err
}

func (k *kinds) look(gvk schema.GroupVersionKind) (Resource, error) {
	served := k.byGroup[gvk.GroupKind()]
	if gvk.Version == "" && len(served) > 0 {
		return served[0], nil
	}
	var versions []string
	for _, r := range served {
		if r.Version == gvk.Version {
			return r, nil
		}
		versions = append(versions, r.Version)
	}
	name := gvk.Kind + " of " + strings.TrimPrefix(gvk.GroupVersion().String(), "/")
	for gv, err := range k.failed {
		if gv.Group == gvk.Group {
			return Resource{}, fmt.Errorf("kind %s: discovery of %s does not answer: %w", name, gv, err)
		}
	}
	if len(versions) > 0 {
		return Resource{}, fmt.Errorf("kind %s: %w in this version; it serves %s", name, ErrNoKind, strings.Join(versions, ", "))
	}
	return Resource{}, fmt.Errorf("kind %s: %w; is its CustomResourceDefinition installed?", name, ErrNoKind)
}

// read asks for all groups. A group whose discovery fails keeps what was known of it: absence is not concluded from an
// error.
func (k *kinds) read() error {
	_, lists, err := k.client.ServerGroupsAndResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return fmt.Errorf("API server does not answer: %w", err)
	}
	k.lastRead, k.stale = time.Now(), false
	fresh := map[schema.GroupKind][]Resource{}
	k.failed = map[schema.GroupVersion]error{}
	if partial != nil {
		k.failed = partial.Groups
		for gk, served := range k.byGroup {
			for _, r := range served {
				if _, bad := k.failed[r.GroupVersion()]; bad {
					fresh[gk] = append(fresh[gk], r)
				}
			}
		}
	}
	k.apis = k.apis[:0:0]
	for _, list := range lists {
		k.add(fresh, list)
	}
	sort.Strings(k.apis)
	k.apis = slices.Compact(k.apis)
	k.byGroup = fresh
	if v, verr := k.client.ServerVersion(); verr == nil {
		k.version = v.GitVersion
	}
	return nil
}

func (k *kinds) add(fresh map[schema.GroupKind][]Resource, list *metav1.APIResourceList) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	k.apis = append(k.apis, gv.String())
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		k.apis = append(k.apis, gv.String()+"/"+r.Kind)
		gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
		fresh[gk] = append(fresh[gk], Resource{
			GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced,
			Patchable: slices.Contains(r.Verbs, "patch"),
			Watchable: slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch"),
		})
	}
}

func (k *kinds) invalidate() {
	k.mu.Lock()
	k.stale = true
	k.mu.Unlock()
}

func (k *kinds) capabilities() (version string, apis []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byGroup == nil || k.stale {
		if err := k.read(); err != nil && k.byGroup == nil {
			return "", nil, err
		}
	}
	return k.version, k.apis, nil
}
