package engine

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/internal/settings"
)

// watchSecrets follows the Secrets and ConfigMaps that hold credentials, hosts, authorities and settings. Only labelled Secrets are
// asked for: the others are none of our business.
func (e *Engine) watchSecrets(ctx context.Context) error {
	client, err := dynamic.NewForConfig(e.opts.REST)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", e.opts.REST.Host, err)
	}
	core := func(resource string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(e.opts.Namespace)
	}
	secrets := selected{core("secrets"), metav1.ListOptions{
		LabelSelector: repository.TypeLabel + " in (" + repository.TypeRepository + "," + repository.TypeTemplate + ")",
	}}
	store := &each{put: e.putSecret, drop: e.dropSecret, known: map[string]bool{}}
	if err := e.follower.follow(ctx, secrets, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, store); err != nil {
		return err
	}
	for name, put := range map[string]func(map[string]string){
		settings.ConfigMap:          e.configure,
		"argocd-ssh-known-hosts-cm": func(d map[string]string) { e.opts.Repositories.KnownHosts(d["ssh_known_hosts"]) },
		"argocd-gpg-keys-cm":        e.putSigningKeys,
		"argocd-tls-certs-cm":       func(d map[string]string) { e.opts.Repositories.Authorities(maps.Clone(d)) },
	} {
		one := selected{core("configmaps"), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}}
		store := &each{known: map[string]bool{}, drop: func(string) { put(nil) }, put: func(u *unstructured.Unstructured) error {
			data, _, err := unstructured.NestedStringMap(u.Object, "data")
			put(data)
			e.onCredentials()
			return err
		}}
		if err := e.follower.follow(ctx, one, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, store); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) putSecret(u *unstructured.Unstructured) error {
	s := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
		return fmt.Errorf("secret %s: is not readable", u.GetName()) // the cause would quote the data
	}
	var put *repository.Entry
	if entry, ok := repository.FromSecret(s); ok {
		put = &entry
	}
	if e.opts.Repositories.Put(s.Name, put) {
		e.onCredentials()
	}
	return nil
}

func (e *Engine) dropSecret(name string) {
	if e.opts.Repositories.Put(name, nil) {
		e.onCredentials()
	}
}

// credentialsAt notes when credentials changed last.
func (r *repos) credentialsAt(at time.Time) {
	r.mu.Lock()
	r.credentials = at
	r.mu.Unlock()
}

// retry asks at once for every repository that did not answer.
func (r *repos) retry() {
	for _, e := range r.all() {
		e.mu.Lock()
		e.asked = e.asked || e.err != nil
		e.mu.Unlock()
	}
	r.nudge()
}

// each is a reflector's store that hands every object on and remembers names only.
type each struct {
	put   func(*unstructured.Unstructured) error
	drop  func(name string)
	known map[string]bool // used by the reflector's goroutine only
}

// Add implements cache.ReflectorStore.
func (s *each) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *each) Update(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	s.known[u.GetName()] = true
	return s.put(u)
}

// Delete implements cache.ReflectorStore.
func (s *each) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		delete(s.known, u.GetName())
		s.drop(u.GetName())
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *each) Replace(list []any, _ string) error {
	seen := map[string]bool{}
	for _, obj := range list {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			seen[u.GetName()] = true
		}
		if err := s.Update(obj); err != nil {
			return err
		}
	}
	for name := range s.known {
		if !seen[name] {
			delete(s.known, name)
			s.drop(name)
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *each) Resync() error { return nil }
