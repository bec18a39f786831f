package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/dev/internal/outside"
	"github.com/lockstep-cd/lockstep/test/local"
)

// namespace of the applications.
const namespace = "lockstep"

// laboratory is everything that runs.
type laboratory struct {
	dir     string
	options options

	offer    *offer
	cluster  *local.Cluster
	kube     *outside.Kube
	lockstep *local.Lockstep
	board    *outside.Board
	unwatch  context.CancelFunc
	watched  chan struct{}
}

func (l *laboratory) start(ctx context.Context, found *collection) error {
	root, err := local.Root()
	if err != nil {
		return err
	}
	if err := local.BuildCluster(ctx, root); err != nil {
		return err
	}
	binary, err := local.BuildLockstep(ctx, root, l.options.lockstep)
	if err != nil {
		return err
	}
	if err := l.serve(ctx, found); err != nil {
		return err
	}
	say("start a local cluster")
	if l.cluster, err = local.StartCluster(ctx, root, filepath.Join(l.dir, "cluster")); err != nil {
		return err
	}
	if l.kube, err = outside.Connect(l.cluster.Kubeconfig); err != nil {
		return err
	}
	o := local.LockstepOptions{Binary: binary, Kubeconfig: l.cluster.Kubeconfig, Namespace: namespace, Dir: l.dir}
	say("lockstep install, lockstep serve")
	if _, err := local.Install(ctx, o); err != nil {
		return err
	}
	if err := l.configure(ctx, found); err != nil {
		return err
	}
	if l.lockstep, err = local.StartLockstep(ctx, o); err != nil {
		return err
	}
	watch, cancel := context.WithCancel(ctx)
	l.board, l.unwatch, l.watched = outside.NewBoard(), cancel, make(chan struct{})
	go func() {
		defer close(l.watched)
		_ = l.board.Follow(watch, l.kube.Apps, namespace) // without it every subject misses its time and says so
	}()
	return nil
}

// serve packages the charts and offers everything under its public URL.
func (l *laboratory) serve(ctx context.Context, found *collection) (err error) {
	if l.offer, err = startOffer(l.dir); err != nil {
		return err
	}
	for _, c := range found.checkouts {
		if err := l.offer.repository(ctx, c, found.commits(c)); err != nil {
			return err
		}
	}
	p := &packer{dir: l.dir}
	if err := p.pack(ctx, found.subjects); err != nil {
		return err
	}
	for _, s := range found.subjects {
		if s.chart == nil || s.err != nil {
			continue
		}
		if s.err = l.offer.publish(ctx, s.chart); s.err == nil {
			say("packaged %s %s of %s for %s", s.chart.chart.Name(), s.version, s.from.url, s.Repository)
		}
	}
	return nil
}

// configure tells Lockstep about the repositories as an administrator does: a Secret each with the proxy, and the
// authority for their hosts.
func (l *laboratory) configure(ctx context.Context, found *collection) error {
	type repository struct{ url, kind string }
	var all []repository
	for _, c := range found.checkouts {
		all = append(all, repository{c.url.String(), "git"})
	}
	for _, s := range found.subjects {
		if s.Repository != "" {
			all = append(all, repository{s.repoURL(), "helm"})
		}
		for _, d := range s.dependencies(ctx) {
			all = append(all, repository{d, "helm"})
		}
	}
	authorities := map[string]any{}
	seen := map[repository]bool{}
	for _, r := range all {
		registry := !strings.Contains(r.url, "://")
		u, err := url.Parse(r.url)
		if registry {
			u, err = url.Parse("oci://" + r.url)
		}
		if err != nil || seen[r] {
			continue
		}
		seen[r] = true
		authorities[u.Hostname()] = string(l.offer.urls.caPEM)
		data := map[string]any{"url": r.url, "type": r.kind, "proxy": l.offer.urls.URL()}
		if registry || u.Scheme == "oci" {
			data["enableOCI"] = "true"
		}
		secret := object("Secret", fmt.Sprintf("tryout-%d", len(seen)), map[string]any{"stringData": data})
		secret.SetLabels(map[string]string{"argocd.argoproj.io/secret-type": "repository"})
		if err := l.kube.Create(ctx, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, secret); err != nil {
			return err
		}
	}
	hosts := object("ConfigMap", "argocd-tls-certs-cm", map[string]any{"data": authorities})
	return l.kube.Create(ctx, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, hosts)
}

func object(kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion("v1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// dependencies are the repositories that the subject's chart names, whether or not anything is offered there: Lockstep
// asks for them here, too, and hears that there is nothing.
func (s *subject) dependencies(ctx context.Context) []string {
	tree, err := s.from.tree(ctx, s.commit)
	if err != nil {
		return nil
	}
	c, err := loadChart(filepath.Join(tree, filepath.FromSlash(s.Path)))
	if err != nil {
		return nil
	}
	var urls []string
	for _, d := range c.Metadata.Dependencies {
		if strings.Contains(d.Repository, "://") && !strings.HasPrefix(d.Repository, "file://") && !slices.Contains(urls, d.Repository) {
			urls = append(urls, d.Repository)
		}
	}
	return urls
}

// close stops everything in reverse.
func (l *laboratory) close() {
	if l.unwatch != nil {
		l.unwatch()
		<-l.watched
	}
	if l.lockstep != nil {
		complain(l.lockstep.Stop())
	}
	if l.cluster != nil {
		complain(l.cluster.Stop())
	}
	if l.offer != nil {
		l.offer.close()
	}
}

// complain shows what went wrong while things end; the table stands by then.
func complain(err error) {
	if err != nil {
		say("%v", err)
	}
}
