// Package cluster owns what is known of a destination cluster: which kinds it serves, and the live objects of the kinds
// that applications use, watched on demand and held compact (DESIGN.md §2.3). It reads only; apply writes. It imports
// values, never another link.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-cd/lockstep/internal/manifest"
)

// ErrNotWatchable says that a kind can not be followed: its objects are made, and that is all.
var ErrNotWatchable = errors.New("the API server offers no list and watch of it")

// Change tells that a live object changed in a way that matters to applications. Now is zero when the object is gone.
type Change struct {
	Key      manifest.Key
	Old, Now Live
}

// Options of a cluster.
type Options struct {
	// REST is how the API server is reached.
	REST *rest.Config
	// Read turns a full object into what is kept of it.
	Read Reader
	// OnChange is called for every change that matters; it must not block.
	OnChange func(Change)
	// Log takes what operators should know.
	Log *slog.Logger
	// SyncTimeout bounds how long a caller waits for the first list of a kind; default 30 s.
	SyncTimeout time.Duration
	// Watchdog looks after the watches.
	Watchdog Watchdog
}

// Cluster is one destination.
type Cluster struct {
	opts    Options
	dynamic dynamic.Interface
	kinds   kinds
	schemas schemas

	mu      sync.Mutex
	ctx     context.Context // ends all watches; set by Start
	watches map[schema.GroupKind]*kindWatch
	wanted  map[manifest.Key]int
	wg      sync.WaitGroup
	stop    context.CancelFunc
}

type kindWatch struct {
	store    *store
	resource Resource
	cancel   context.CancelFunc
	dog      Watchdog

	mu    sync.Mutex
	err   error
	since time.Time
}

// New prepares a cluster; nothing is read before Start.
func New(opts Options) (*Cluster, error) {
	if opts.SyncTimeout == 0 {
		opts.SyncTimeout = 30 * time.Second
	}
	client, err := rest.HTTPClientFor(opts.REST)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.REST.Host, err)
	}
	return newWith(opts, client)
}

func newWith(opts Options, client *http.Client) (*Cluster, error) {
	dyn, err := dynamic.NewForConfigAndClient(opts.REST, client)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.REST.Host, err)
	}
	disc, err := discovery.NewDiscoveryClientForConfigAndClient(opts.REST, client)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.REST.Host, err)
	}
	return &Cluster{
		opts: opts, dynamic: dyn, kinds: kinds{client: disc}, schemas: schemas{client: disc.OpenAPIV3},
		watches: map[schema.GroupKind]*kindWatch{}, wanted: map[manifest.Key]int{},
	}, nil
}

// Start lets watches begin; they end with Stop.
func (c *Cluster) Start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.stop = context.WithCancel(ctx)
}

// Stop ends all watches and waits for them.
func (c *Cluster) Stop() {
	c.mu.Lock()
	if c.stop != nil {
		c.stop()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// Kind finds how a kind is reached; an empty version takes the preferred one. ErrNoKind says that it is not served.
func (c *Cluster) Kind(gvk schema.GroupVersionKind) (Resource, error) { return c.kinds.find(gvk) }

// Capabilities are the version and the API list that charts see.
func (c *Cluster) Capabilities() (version string, apis []string, err error) {
	return c.kinds.capabilities()
}

// Invalidate makes the next question about kinds ask the API server: after a CustomResourceDefinition was applied.
func (c *Cluster) Invalidate() {
	c.kinds.invalidate()
	c.schemas.refresh()
}

// Want registers that applications declare keys: their live objects are kept from now on. Each Want is undone by one
// Unwant of the same keys.
func (c *Cluster) Want(keys []manifest.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		c.wanted[k]++
	}
}

// Unwant undoes Want.
func (c *Cluster) Unwant(keys []manifest.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		if c.wanted[k]--; c.wanted[k] <= 0 {
			delete(c.wanted, k)
		}
	}
}

func (c *Cluster) wants(k manifest.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted[k] > 0
}

// Watch makes sure that the kind is watched and waits for its first list. A kind that can't be listed is an error that
// says since when; it concerns only applications that use the kind.
func (c *Cluster) Watch(ctx context.Context, gk schema.GroupKind) error {
	w, err := c.watch(gk) //nolint:contextcheck // a watch serves all and outlives the one who asked first
	if err != nil {
		return err
	}
	timer := time.NewTimer(c.opts.SyncTimeout)
	defer timer.Stop()
	var late bool
	select {
	case <-w.store.ready():
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		late = true
	}
	// A watch that has been down for as long as a first list may take knows too little of the cluster to compare with.
	if since, err := w.failure(); err != nil && (late || time.Since(since) > c.opts.SyncTimeout) {
		return fmt.Errorf("kind %s can't be listed since %s: %w", gk, since.UTC().Format(time.RFC3339), err)
	}
	if late {
		return fmt.Errorf("kind %s: no list within %s", gk, c.opts.SyncTimeout)
	}
	return nil
}

func (c *Cluster) watch(gk schema.GroupKind) (*kindWatch, error) {
	c.mu.Lock()
	w := c.watches[gk]
	c.mu.Unlock()
	if w != nil {
		return w, nil
	}
	res, err := c.kinds.find(gk.WithVersion(""))
	if err != nil {
		return nil, err
	}
	if !res.Watchable {
		return nil, fmt.Errorf("kind %s: %w", gk, ErrNotWatchable)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[gk]; w != nil {
		return w, nil
	}
	if c.ctx == nil || c.ctx.Err() != nil {
		return nil, fmt.Errorf("kind %s: %w", gk, errors.New("the cluster connection is closed"))
	}
	ctx, cancel := context.WithCancel(c.ctx)
	w = &kindWatch{resource: res, cancel: cancel, dog: c.opts.Watchdog}
	w.store = newStore(c.opts.Read, c.wants, func(k manifest.Key, old, now Live) {
		c.opts.OnChange(Change{Key: k, Old: old, Now: now})
	})
	c.watches[gk] = w
	c.wg.Go(func() { w.run(ctx, c.dynamic.Resource(res.GroupVersionResource)) })
	return w, nil
}

// Reread lists every watched kind again, because Options.Read answers otherwise from now on. What is known stays known
// meanwhile; Watch waits for the new lists.
func (c *Cluster) Reread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watches {
		w.cancel()
		w.store.again()
		var ctx context.Context
		ctx, w.cancel = context.WithCancel(c.ctx)
		c.wg.Go(func() { w.run(ctx, c.dynamic.Resource(w.resource.GroupVersionResource)) })
	}
}

// run follows the kind until ctx ends.
func (w *kindWatch) run(ctx context.Context, client dynamic.ResourceInterface) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, o)
			w.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := client.Watch(ctx, o)
			w.note(err)
			if err != nil {
				return nil, err
			}
			return w.dog.Guard(events, w.resource.GroupResource().String()), nil
		},
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(w.resource.GroupVersion().WithKind(w.resource.Kind))
	cache.NewReflectorWithOptions(lw, example, w.store, cache.ReflectorOptions{Name: w.resource.String(), Backoff: Retries()}).
		RunWithContext(ctx)
}

func (w *kindWatch) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.err = nil
		return
	}
	if w.err == nil {
		w.since = time.Now()
	}
	w.err = err
}

func (w *kindWatch) failure() (since time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since, w.err
}

// Lookup tells what is known of a live object of a watched kind. An object that exists and was not kept is read once.
func (c *Cluster) Lookup(ctx context.Context, key manifest.Key) (Live, bool, error) {
	c.mu.Lock()
	w := c.watches[key.GroupKind()]
	c.mu.Unlock()
	if w == nil {
		return c.lookupUnwatched(ctx, key)
	}
	l, found, unread := w.store.get(key)
	if !unread {
		return l, found, nil
	}
	u, err := c.Get(ctx, w.resource, key)
	if apierrors.IsNotFound(err) {
		return Live{}, false, nil
	}
	if err != nil {
		return Live{}, false, err
	}
	l = c.opts.Read(u)
	w.store.observe(l)
	return l, true, nil
}

// lookupUnwatched looks for an object of a kind that is not watched, which is an error unless the kind can not be: of what can
// only be made nothing is ever there, the rest is read each time.
func (c *Cluster) lookupUnwatched(ctx context.Context, key manifest.Key) (Live, bool, error) {
	r, err := c.kinds.find(key.GroupKind().WithVersion(""))
	switch {
	case err != nil:
		return Live{}, false, err
	case r.Watchable:
		return Live{}, false, fmt.Errorf("kind %s is not watched", key.GroupKind())
	case !r.Patchable:
		return Live{}, false, nil
	}
	u, err := c.Get(ctx, r, key)
	if apierrors.IsNotFound(err) {
		return Live{}, false, nil
	}
	if err != nil {
		return Live{}, false, err
	}
	return c.opts.Read(u), true, nil
}

// Get reads a whole object.
func (c *Cluster) Get(ctx context.Context, r Resource, key manifest.Key) (*unstructured.Unstructured, error) {
	var client dynamic.ResourceInterface = c.dynamic.Resource(r.GroupVersionResource)
	if r.Namespaced {
		client = c.dynamic.Resource(r.GroupVersionResource).Namespace(key.Namespace)
	}
	return client.Get(ctx, key.Name, metav1.GetOptions{})
}

// Observe takes in the answer to a write of ours at once, so that nobody waits for the watch to bring it.
func (c *Cluster) Observe(u *unstructured.Unstructured) {
	c.mu.Lock()
	w := c.watches[u.GroupVersionKind().GroupKind()]
	c.mu.Unlock()
	if w != nil {
		w.store.observe(c.opts.Read(u))
	}
}

// Ends takes in that a request of ours began the deletion of an object, which was at version then; version may be empty.
func (c *Cluster) Ends(key manifest.Key, uid types.UID, version string) {
	c.mu.Lock()
	w := c.watches[key.GroupKind()]
	c.mu.Unlock()
	if w != nil {
		w.store.ends(key, uid, version)
	}
}

// Owned returns the live objects, of all watched kinds, whose tracking mark names the application.
func (c *Cluster) Owned(application string) []Live {
	c.mu.Lock()
	watches := make([]*kindWatch, 0, len(c.watches))
	for _, w := range c.watches {
		watches = append(watches, w)
	}
	c.mu.Unlock()
	var out []Live
	for _, w := range watches {
		out = w.store.of(application, out)
	}
	return out
}

// Exists tells whether an object of a watched kind is in the cluster.
func (c *Cluster) Exists(key manifest.Key) bool {
	c.mu.Lock()
	w := c.watches[key.GroupKind()]
	c.mu.Unlock()
	if w == nil {
		return false
	}
	_, found, unread := w.store.get(key)
	return found || unread
}
