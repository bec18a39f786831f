package addons

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

const (
	// addressAfter delays the address of a Service or an Ingress, a Go duration; the
	// word "never" keeps it away.
	addressAfter = "dev.lockstep/address-after"
	never        = "never"
)

// ingressAddress is the one address of the one ingress controller.
const ingressAddress = layout.LoadBalancerNet + ".0.1"

type addresses struct {
	client              kubernetes.Interface
	services            corelisters.ServiceLister
	ingresses           networkinglisters.IngressLister
	later, ingressLater func(key string, d time.Duration)
}

func newAddresses(client kubernetes.Interface, factory informers.SharedInformerFactory) *addresses {
	return &addresses{
		client:    client,
		services:  factory.Core().V1().Services().Lister(),
		ingresses: factory.Networking().V1().Ingresses().Lister(),
	}
}

// wait is how long an object still has to wait for its address; ok is false for ever.
func wait(obj metav1.Object, now time.Time) (d time.Duration, ok bool) {
	value := obj.GetAnnotations()[addressAfter]
	if value == never {
		return 0, false
	}
	delay, err := time.ParseDuration(value)
	if err != nil {
		return 0, true
	}
	return obj.GetCreationTimestamp().Add(delay).Sub(now), true
}

func (a *addresses) syncService(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("service %s: key: %w", key, err)
	}
	svc, err := a.services.Services(namespace).Get(name)
	if err != nil {
		return err
	}
	wanted := svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil && svc.DeletionTimestamp == nil
	have := len(svc.Status.LoadBalancer.Ingress) > 0
	switch {
	case !wanted && have && svc.Spec.LoadBalancerClass == nil:
		svc = svc.DeepCopy()
		svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	case wanted && !have:
		d, ok := wait(svc, time.Now())
		if !ok {
			return nil
		}
		if d > 0 {
			a.later(key, d)
			return nil
		}
		svc = svc.DeepCopy()
		mode := corev1.LoadBalancerIPModeVIP
		ip, err := a.free(svc)
		if err != nil {
			return err
		}
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip, IPMode: &mode}}
	default:
		return nil
	}
	_, err = a.client.CoreV1().Services(namespace).UpdateStatus(ctx, svc, metav1.UpdateOptions{})
	return err
}

// free chooses an address by the Service's UID, so that a repeated attempt chooses the
// same one, and steps on when another Service has it.
func (a *addresses) free(svc *corev1.Service) (string, error) {
	all, err := a.services.List(labels.Everything())
	if err != nil {
		return "", fmt.Errorf("services: list: %w", err)
	}
	var used []string
	for _, other := range all {
		for _, in := range other.Status.LoadBalancer.Ingress {
			used = append(used, in.IP)
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(svc.UID))
	// 198.18.1.0 to 198.18.255.255: the first 256 are kept for ingress controllers.
	const size = 255 * 256
	start := int(hash.Sum32() % size)
	for i := range size {
		n := (start+i)%size + 256
		ip := fmt.Sprintf("%s.%d.%d", layout.LoadBalancerNet, n/256, n%256)
		if !slices.Contains(used, ip) {
			return ip, nil
		}
	}
	return "", fmt.Errorf("service %s/%s: all load balancer addresses are taken", svc.Namespace, svc.Name)
}

func (a *addresses) syncIngress(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("ingress %s: key: %w", key, err)
	}
	ing, err := a.ingresses.Ingresses(namespace).Get(name)
	if err != nil {
		return err
	}
	if len(ing.Status.LoadBalancer.Ingress) > 0 || ing.DeletionTimestamp != nil {
		return nil
	}
	d, ok := wait(ing, time.Now())
	if !ok {
		return nil
	}
	if d > 0 {
		a.ingressLater(key, d)
		return nil
	}
	ing = ing.DeepCopy()
	ing.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: ingressAddress}}
	_, err = a.client.NetworkingV1().Ingresses(namespace).UpdateStatus(ctx, ing, metav1.UpdateOptions{})
	return err
}
