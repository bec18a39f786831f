package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/dev/internal/outside"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/local"
)

const (
	namespace = "lockstep"
	// rootApp is the application of applications, and rootFile where it lies in the examples.
	rootApp  = "guestbooks"
	rootFile = "guestbooks.yaml"
	appsDir  = "apps"
	// placeholder stands in the examples for the repository's address.
	placeholder = "https://git.example.com/guestbook.git"
)

// stage is everything that the demo has started.
type stage struct {
	root string
	show *show

	binary   string
	dir      string
	cluster  *local.Cluster
	kube     *outside.Kube
	git      *gitserver.Server
	files    map[string]string
	forge    *outside.Forge
	lockstep *local.Lockstep
	board    *outside.Board
	// names of all applications, the root first.
	names []string

	watching sync.WaitGroup
	unwatch  context.CancelFunc
}

// setting are the acts without which there is nothing to see.
func (st *stage) setting(o options) []act {
	return []act{
		{"Build the local cluster and Lockstep", 0, true, func(ctx context.Context) error { return st.build(ctx, o) }},
		{"Start a Kubernetes on this machine, without containers", time.Minute, true, st.startCluster},
		{"Serve examples/ as a Git repository over HTTP", 10 * time.Second, true, st.startGit},
		{"Install Lockstep's definitions and start it", time.Minute, true, st.startLockstep},
		{"Apply one application that lists the others, and watch", 2 * time.Minute, true, st.applyRoot},
	}
}

func (st *stage) build(ctx context.Context, o options) (err error) {
	if err = local.BuildCluster(ctx, st.root); err == nil {
		st.binary, err = local.BuildLockstep(ctx, st.root, o.lockstep)
	}
	return err
}

func (st *stage) startCluster(ctx context.Context) (err error) {
	if st.dir, err = os.MkdirTemp("", "lockstep-demo-"); err != nil {
		return err
	}
	st.show.say("etcd, API server, controller manager and scheduler as plain processes; nodes that only pretend to run pods")
	if st.cluster, err = local.StartCluster(ctx, st.root, filepath.Join(st.dir, "cluster")); err != nil {
		return err
	}
	st.kube, err = outside.Connect(st.cluster.Kubeconfig)
	st.show.say("API server %s", st.cluster.Server)
	return err
}

func (st *stage) startGit(context.Context) (err error) {
	if st.files, err = gitserver.ReadDir(filepath.Join(st.root, "examples")); err != nil {
		return err
	}
	if st.git, err = gitserver.Start(gitserver.Options{Dir: filepath.Join(st.dir, "git"), Push: true}); err != nil {
		return err
	}
	st.names = []string{rootApp}
	for name, data := range st.files {
		if path.Dir(name) == appsDir || name == rootFile {
			st.files[name] = strings.ReplaceAll(data, placeholder, st.git.URL("guestbook"))
		}
		if path.Dir(name) == appsDir {
			st.names = append(st.names, strings.TrimSuffix(path.Base(name), ".yaml"))
		}
	}
	slices.Sort(st.names[1:])
	repo, err := st.git.Create("guestbook", st.files)
	if err != nil {
		return err
	}
	head, err := repo.Resolve("main")
	if err != nil {
		return err
	}
	st.show.say("%s, branch main at %s", repo.URL(), short(head))
	st.forge, err = outside.NewForge(repo)
	return err
}

func (st *stage) startLockstep(ctx context.Context) error {
	o := local.LockstepOptions{Binary: st.binary, Kubeconfig: st.cluster.Kubeconfig, Namespace: namespace, Dir: st.dir}
	st.show.say("lockstep install")
	out, err := local.Install(ctx, o)
	if err != nil {
		return err
	}
	st.show.say("%s", out)
	st.show.say("lockstep serve")
	if st.lockstep, err = local.StartLockstep(ctx, o); err != nil {
		return err
	}
	st.forge.Tell(st.lockstep)
	st.show.say("answers at %s; its log is %s", st.lockstep.Base, st.lockstep.Log)
	return nil
}

func (st *stage) applyRoot(ctx context.Context) error {
	watched, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the board outlives this act; close ends it
	st.board, st.unwatch = outside.NewBoard(), cancel
	st.watching.Go(func() { _ = st.board.Follow(watched, st.kube.Apps, namespace) }) // without it the acts miss their time and say so
	app := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(st.files[rootFile]), &app.Object); err != nil {
		return fmt.Errorf("examples/%s: %w", rootFile, err)
	}
	if err := st.kube.Create(ctx, v1alpha1.Applications(), app); err != nil {
		return err
	}
	st.show.say("created Application %s, which deploys the folder %s", rootApp, appsDir)
	return st.watchTable(ctx, st.names)
}

// leave keeps everything running until ctx ends, and says what to try.
func (st *stage) leave(ctx context.Context) {
	fmt.Fprintf(st.show.out, "\n%s\n", st.show.bold("Everything keeps running until Ctrl-C. In another terminal:"))
	lockstep := st.binary
	if rel, err := filepath.Rel(st.root, st.binary); err == nil && !strings.HasPrefix(rel, "..") {
		lockstep = rel
	}
	for _, line := range []string{
		"export KUBECONFIG=" + st.cluster.Kubeconfig,
		lockstep + " app list",
		lockstep + " app get guestbook-prod",
		lockstep + " app history guestbook-stage",
		"kubectl get applications,deployments,pods -A",
		"kubectl -n guestbook-prod scale deployment web --replicas=0   # it is put back",
		"git clone " + st.forge.Repo.URL() + "   # change something, push to main, and watch",
		lockstep + " app list --watch",
		"tail -f " + st.lockstep.Log,
	} {
		fmt.Fprintf(st.show.out, "    %s\n", line)
	}
	served, cancel := context.WithCancel(ctx)
	defer cancel()
	st.watching.Go(func() { st.forge.Serve(served) })
	select {
	case <-ctx.Done():
	case <-st.lockstep.Exited():
		st.show.say("%v", st.lockstep.Ended())
	case <-st.cluster.Exited():
		st.show.say("the local cluster has ended")
	}
}

// close stops everything in reverse.
func (st *stage) close() {
	if st.cluster != nil {
		fmt.Fprintf(st.show.out, "\nstopping what was started\n")
	}
	if st.unwatch != nil {
		st.unwatch()
		st.watching.Wait()
	}
	if st.lockstep != nil {
		st.complain(st.lockstep.Stop())
	}
	if st.git != nil {
		_ = st.git.Close() // its folder goes below
	}
	if st.cluster != nil {
		st.complain(st.cluster.Stop())
	}
	if st.dir != "" {
		st.complain(os.RemoveAll(st.dir))
	}
}

// complain shows what went wrong while things end; the demo's own result stands by then.
func (st *stage) complain(err error) {
	if err != nil {
		st.show.say("%v", err)
	}
}
