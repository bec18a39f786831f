// Package addons does what a cloud provider, an ingress controller and a volume
// provisioner would do: Services of type LoadBalancer and Ingresses get addresses,
// claims get volumes. It works through the API only and depends on layout alone.
package addons

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// retryMax bounds the wait between two attempts at one object.
const retryMax = 10 * time.Second

// loop is a queue of object keys, the handlers that fill it and the function that
// works on one key.
type loop struct {
	name  string
	queue workqueue.TypedRateLimitingInterface[string]
	sync  func(ctx context.Context, key string) error
	log   *slog.Logger
}

func newLoop(name string, log *slog.Logger, sync func(context.Context, string) error) *loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, retryMax)
	return &loop{name: name, queue: workqueue.NewTypedRateLimitingQueue(limiter), sync: sync, log: log}
}

// watch adds every object of the informer to the queue whenever it changes.
func (l *loop) watch(informer cache.SharedIndexInformer) error {
	add := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			l.queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add, UpdateFunc: func(_, n any) { add(n) },
	})
	if err != nil {
		return fmt.Errorf("%s: watch: %w", l.name, err)
	}
	return nil
}

func (l *loop) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, l.queue.ShutDown)
	defer stop()
	for {
		key, shut := l.queue.Get()
		if shut {
			return
		}
		err := l.sync(ctx, key)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			l.queue.Forget(key)
		default:
			// Conflicts are everyday: somebody else wrote first, the retry reads anew.
			if !apierrors.IsConflict(err) && ctx.Err() == nil {
				l.log.Warn("add-on will retry", "addon", l.name, "object", key, "error", err)
			}
			l.queue.AddRateLimited(key)
		}
		l.queue.Done(key)
	}
}

// Run works until ctx ends. It returns early only when it cannot start.
func Run(ctx context.Context, client kubernetes.Interface, log *slog.Logger) error {
	if err := createStorage(ctx, client); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(stripManaged))
	addresses := newAddresses(client, factory)
	volumes := newVolumes(client, factory)
	services := newLoop("load balancer", log, addresses.syncService)
	ingresses := newLoop("ingress", log, addresses.syncIngress)
	claims := newLoop("volume claim", log, volumes.syncClaim)
	released := newLoop("volume", log, volumes.syncVolume)
	addresses.later = func(key string, d time.Duration) { services.queue.AddAfter(key, d) }
	addresses.ingressLater = func(key string, d time.Duration) { ingresses.queue.AddAfter(key, d) }
	err := errors.Join(
		services.watch(factory.Core().V1().Services().Informer()),
		ingresses.watch(factory.Networking().V1().Ingresses().Informer()),
		claims.watch(factory.Core().V1().PersistentVolumeClaims().Informer()),
		released.watch(factory.Core().V1().PersistentVolumes().Informer()),
	)
	if err != nil {
		return err
	}
	// Claims look at their class, so the classes have to be there first.
	factory.Storage().V1().StorageClasses().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var wg sync.WaitGroup
	for _, l := range []*loop{services, ingresses, claims, released} {
		wg.Go(func() { l.run(ctx) })
	}
	wg.Wait()
	factory.Shutdown()
	return nil
}

// stripManaged drops the part of an object that nobody here reads.
func stripManaged(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}
