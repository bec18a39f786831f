// Package evidence owns what an explanation is found in: it reads the objects of an application that are not well, what
// controllers made for them, what stands around them and their recent events, within bounds, and writes nothing.
package evidence

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cause"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/health"
)

// Bounds of what one explanation reads. What is not well beyond them is rarely another cause.
const (
	mostSuspects = 500
	mostUnwell   = 50 // of them, with what controllers made for them
	mostListed   = 5_000
	mostLine     = 1 << 10 // bytes of a log
	page         = 500
)

// Finder reads what explains the state of applications. It may be used by several goroutines.
type Finder struct {
	dyn    dynamic.Interface
	core   kubernetes.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
	// rules are those of what is well.
	rules func() health.Rules

	mu    sync.Mutex
	known time.Time // when the mapper asked the cluster for its kinds
}

// New makes a finder that reads with the rights of config. What is well is asked of rules each time.
func New(config *rest.Config, rules func() health.Rules) (*Finder, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server has fair limits of its own
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disc, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disc))
	return &Finder{dyn: dyn, core: core, mapper: mapper, rules: rules, known: time.Now()}, nil
}

// Found is what was read for one application.
type Found struct {
	// Input is what a cause is found in; it has no LastLine, see Finder.LastLine.
	Input cause.Input
	// Unread says what could not be read, or was too much.
	Unread []string
}

// Of reads the objects of an application that are not well, what belongs to them and their recent events. Objects whose
// health the status does not hold are looked at while the application as a whole is not well. What may not be read is left
// out and named; any other error of the API server is returned.
func (f *Finder) Of(ctx context.Context, app *v1alpha1.Application) (Found, error) {
	f.refresh()
	e := &evidence{Finder: f, uids: map[string]bool{}, lists: map[string]bool{}}
	all, unwell := suspects(app), 0
	for i, s := range all {
		if i == mostSuspects || unwell == mostUnwell {
			e.unread = append(e.unread, fmt.Sprintf("%d of the application's objects: more than are looked at", len(all)-i))
			break
		}
		before := len(e.found)
		if err := e.object(ctx, s); err != nil {
			return Found{}, fmt.Errorf("%s %s/%s: %w", s.gvk.Kind, s.namespace, s.name, err)
		}
		if len(e.found) > before {
			unwell++
		}
	}
	if err := e.surround(ctx); err != nil {
		return Found{}, err
	}
	return Found{Input: cause.Input{Subtree: e.found, Events: e.events}, Unread: e.unread}, ctx.Err()
}

// refresh makes the mapper ask again from time to time: kinds come and go.
func (f *Finder) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.known) > time.Minute {
		f.mapper.Reset()
		f.known = time.Now()
	}
}

// suspect is an object that may explain something.
type suspect struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	// unjudged tells that its health is to be found out first.
	unjudged bool
}

// suspects are the hooks of an application that failed, its objects that are not well, and those of which nobody knows.
func suspects(app *v1alpha1.Application) []suspect {
	var out, unjudged []suspect
	if op := app.Status.OperationState; op != nil && op.SyncResult != nil {
		for _, r := range op.SyncResult.Resources {
			if r.HookType != "" && r.HookPhase != v1alpha1.OperationSucceeded {
				out = append(out, suspect{gvk: schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}, namespace: r.Namespace, name: r.Name})
			}
		}
	}
	for i := range app.Status.Resources {
		r := &app.Status.Resources[i]
		s := suspect{gvk: schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}, namespace: r.Namespace, name: r.Name}
		switch {
		case r.RequiresPruning, r.Health != nil && !well(r.Health.Status):
			out = append(out, s)
		case r.Health == nil && app.Status.ResourceHealthSource != "" && !well(app.Status.Health.Status):
			s.unjudged = true
			unjudged = append(unjudged, s)
		}
	}
	return append(out, unjudged...)
}

// well tells that there is nothing to explain: health is good, or is of no kind.
func well(h v1alpha1.HealthStatusCode) bool { return h == "" || h.Well() }

// evidence gathers what a cause is found in, for one application.
type evidence struct {
	*Finder
	found  []cause.Object
	uids   map[string]bool
	lists  map[string]bool // what was listed, by resource and namespace
	events []field.Map
	unread []string
}

// object reads one object, and what its kind makes.
func (e *evidence) object(ctx context.Context, s suspect) error {
	api, err := e.api(s.gvk, s.namespace)
	if err != nil || api == nil {
		return err
	}
	u, err := api.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return e.passOver(err, s.gvk.Kind+" "+s.namespace+"/"+s.name)
	}
	if s.unjudged {
		if h, has := e.rules().Of(ctx, u); !has || well(h.Status) {
			return nil
		}
	}
	return e.add(ctx, u)
}

// api is where objects of a kind are read; nil where the cluster does not serve it, which the status says already.
func (e *evidence) api(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	m, err := e.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return e.dyn.Resource(m.Resource).Namespace(namespace), nil
	}
	return e.dyn.Resource(m.Resource), nil
}

// passOver goes on without what may not be read or is gone; anything else ends the explanation.
func (e *evidence) passOver(err error, what string) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		e.unread = append(e.unread, what+": you may not read it")
		return nil
	}
	return err
}

func (e *evidence) add(ctx context.Context, u *unstructured.Unstructured) error {
	uid := string(u.GetUID())
	if e.uids[uid] {
		return nil
	}
	e.uids[uid] = true
	if u.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		u = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": u.Object["metadata"]}}
	}
	h, _ := e.rules().Of(ctx, u)
	e.found = append(e.found, cause.Object{Fields: field.Map(u.Object), Health: h})
	for _, kind := range makes(u.GroupVersionKind().GroupKind()) {
		if err := e.children(ctx, kind, u); err != nil {
			return err
		}
	}
	return nil
}

// makes are the kinds of objects that controllers make for a kind, and that explain it.
func makes(kind schema.GroupKind) []schema.GroupVersionKind {
	of := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	pods := of("", "v1", "Pod")
	switch kind.String() {
	case "Deployment.apps", "Rollout.argoproj.io":
		return []schema.GroupVersionKind{of("apps", "v1", "ReplicaSet")}
	case "CronJob.batch":
		return []schema.GroupVersionKind{of("batch", "v1", "Job")}
	case "Certificate.cert-manager.io":
		return []schema.GroupVersionKind{of("cert-manager.io", "v1", "CertificateRequest")}
	case "CertificateRequest.cert-manager.io":
		return []schema.GroupVersionKind{of("acme.cert-manager.io", "v1", "Order")}
	case "Order.acme.cert-manager.io":
		return []schema.GroupVersionKind{of("acme.cert-manager.io", "v1", "Challenge")}
	case "Pod", "Service", "PersistentVolumeClaim", "Namespace", "Secret", "ConfigMap", "Challenge.acme.cert-manager.io":
		return nil
	case "ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch":
		return []schema.GroupVersionKind{pods}
	}
	return []schema.GroupVersionKind{pods, of("apps", "v1", "Deployment"), of("apps", "v1", "StatefulSet"), of("batch", "v1", "Job")}
}

// children adds the objects of a kind that an object owns.
func (e *evidence) children(ctx context.Context, kind schema.GroupVersionKind, owner *unstructured.Unstructured) error {
	if owner.GetNamespace() == "" {
		return nil
	}
	return e.each(ctx, kind, owner.GetNamespace(), func(u *unstructured.Unstructured) error {
		for _, ref := range u.GetOwnerReferences() {
			if ref.UID == owner.GetUID() {
				return e.add(ctx, u)
			}
		}
		return nil
	})
}

// each visits the objects of a kind in a namespace, as many as are read.
func (e *evidence) each(ctx context.Context, kind schema.GroupVersionKind, namespace string, visit func(*unstructured.Unstructured) error) error {
	what := kind.Kind + " in namespace " + namespace
	if e.lists[what] {
		return nil // it may not be read, which was said
	}
	api, err := e.api(kind, namespace)
	if err != nil || api == nil {
		return err
	}
	opts := metav1.ListOptions{Limit: page}
	for n := 0; ; {
		list, err := api.List(ctx, opts)
		if err != nil {
			e.lists[what] = true
			return e.passOver(err, what)
		}
		for i := range list.Items {
			if err := visit(&list.Items[i]); err != nil {
				return err
			}
		}
		n += len(list.Items)
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return nil
		}
		if n >= mostListed {
			e.unread = append(e.unread, fmt.Sprintf("%s: there are more than the %d that were read", what, mostListed))
			return nil
		}
	}
}

// surround adds what stands around the objects found: their namespaces, the claims that pods use, and the events.
func (e *evidence) surround(ctx context.Context) error {
	namespaces := map[string]bool{}
	for _, o := range slices.Clone(e.found) {
		namespace := o.Fields.Text("metadata", "namespace")
		if namespace != "" {
			namespaces[namespace] = true
		}
		if o.Fields.Text("kind") != "Pod" {
			continue
		}
		for _, v := range o.Fields.List("spec", "volumes") {
			if name := v.Text("persistentVolumeClaim", "claimName"); name != "" {
				if err := e.object(ctx, suspect{gvk: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, namespace: namespace, name: name}); err != nil {
					return err
				}
			}
		}
	}
	for namespace := range namespaces {
		if err := e.object(ctx, suspect{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, name: namespace}); err != nil {
			return err
		}
		err := e.each(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, namespace, func(u *unstructured.Unstructured) error {
			e.events = append(e.events, field.Map(u.Object))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// LastLine is the last line that a container wrote before it stopped, empty where it can not be read: the cause is told
// without it then.
func (f *Finder) LastLine(ctx context.Context, namespace, pod, container string) string {
	for _, previous := range []bool{true, false} {
		one, most := int64(1), int64(mostLine)
		stream, err := f.core.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
			Container: container, Previous: previous, TailLines: &one, LimitBytes: &most,
		}).Stream(ctx)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(stream, mostLine))
		_ = stream.Close()
		if line := strings.TrimSpace(string(text)); err == nil && line != "" {
			return line
		}
	}
	return ""
}
