package adoption_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/install"
	"github.com/lockstep-cd/lockstep/test/env"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/local"
	"github.com/lockstep-cd/lockstep/test/program"
)

// patience is how long anything may take.
const patience = 3 * time.Minute

// stage is a namespace with Argo CD's settings, beside one for what applications declare, and a repository.
type stage struct {
	t             *testing.T
	cluster       *env.Kube
	client        dynamic.Interface
	control, dest string
	repo          *gitserver.Repo
	dir           string
	argo          *local.ArgoCD
	lockstep      *local.Lockstep
}

// newStage sets the stage; method is how Argo CD marks what it makes.
func newStage(t *testing.T, method string, files map[string]string) *stage {
	t.Helper()
	c := env.Cluster(t)
	s := &stage{t: t, cluster: c, dir: t.TempDir(), control: env.Namespace(t, c), dest: env.Namespace(t, c)}
	program.Use(t)
	var err error
	s.client, err = dynamic.NewForConfig(c.REST())
	s.must(err)
	_, err = install.All(t.Context(), s.client, install.Options{Namespace: s.control})
	s.must(err)
	git, err := gitserver.Start(gitserver.Options{})
	s.must(err)
	t.Cleanup(func() { _ = git.Close() })
	s.repo, err = git.Create("content", files)
	s.must(err)
	s.settings(method)
	t.Cleanup(func() {
		s.stopLockstep()
		s.stopArgo()
		if t.Failed() {
			t.Log(local.Tail(filepath.Join(s.dir, "lockstep.log"), 60))
		}
		s.dropFinalizers()
	})
	return s
}

// settings are what an installation of Argo CD has in its namespace.
func (s *stage) settings(method string) {
	s.t.Helper()
	for _, text := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm}, data: {application.resourceTrackingMethod: " + method + "}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-rbac-cm}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-ssh-known-hosts-cm}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-tls-certs-cm}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: argocd-secret}, stringData: {server.secretkey: only-for-tests}}",
	} {
		u := &unstructured.Unstructured{}
		s.must(yaml.Unmarshal([]byte(text), &u.Object))
		u.SetLabels(map[string]string{"app.kubernetes.io/part-of": "argocd"})
		gvr := schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(u.GetKind()) + "s"}
		_, err := s.client.Resource(gvr).Namespace(s.control).Create(s.t.Context(), u, metav1.CreateOptions{})
		s.must(err)
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) startArgo() {
	s.t.Helper()
	root, err := local.Root()
	s.must(err)
	s.argo, err = local.StartArgoCD(s.t.Context(), local.ArgoCDOptions{
		Root: root, Kubeconfig: s.cluster.Kubeconfig(), Namespace: s.control, Dir: s.dir,
	})
	s.must(err)
}

func (s *stage) stopArgo() {
	if s.argo == nil {
		return
	}
	s.argo.Stop()
	if s.t.Failed() {
		s.t.Log(s.argo.Log(8))
	}
	s.argo = nil
}

func (s *stage) startLockstep(flags ...string) {
	s.t.Helper()
	self, err := os.Executable()
	s.must(err)
	s.lockstep, err = local.StartLockstep(s.t.Context(), local.LockstepOptions{
		Binary: self, Kubeconfig: s.cluster.Kubeconfig(), Namespace: s.control, Dir: s.dir,
		Flags: append([]string{"--poll-interval", "1s"}, flags...),
	})
	s.must(err)
}

func (s *stage) stopLockstep() {
	if s.lockstep != nil {
		_ = s.lockstep.Stop() // it may have ended with an error that the test has told of
		s.lockstep = nil
	}
}

// run runs a command of Lockstep; it must end with the code given.
func (s *stage) run(code int, args ...string) string {
	s.t.Helper()
	self, err := os.Executable()
	s.must(err)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append(args, "--kubeconfig", s.cluster.Kubeconfig(), "--namespace", s.control)...)
	out, _ := cmd.CombinedOutput() // the code says it
	if cmd.ProcessState.ExitCode() != code {
		s.t.Fatalf("lockstep %s: ends with %d, want %d:\n%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), code, out)
	}
	return string(out)
}

func (s *stage) apps() dynamic.ResourceInterface {
	return s.client.Resource(v1alpha1.Applications()).Namespace(s.control)
}

// app makes an application with automated sync, prune and self-heal; the marks of its objects hold its name, which is the
// name given with the namespace.
func (s *stage) app(name string, change ...func(*v1alpha1.Application)) {
	s.t.Helper()
	a := &v1alpha1.Application{}
	a.APIVersion, a.Kind, a.Name, a.Namespace = v1alpha1.GroupVersion().String(), v1alpha1.ApplicationKind, s.real(name), s.control
	a.Spec = v1alpha1.ApplicationSpec{
		Project: "default", Source: &v1alpha1.ApplicationSource{RepoURL: s.repo.URL(), Path: name, TargetRevision: "main"},
		Destination: v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: s.dest},
		SyncPolicy:  &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true}},
	}
	for _, c := range change {
		c(a)
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	s.must(err)
	delete(u, "status")
	_, err = s.apps().Create(s.t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{})
	s.must(err)
}

func (s *stage) real(name string) string { return name + "-" + s.control[len(s.control)-8:] }

// raw is an application with its managedFields.
func (s *stage) raw(name string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.apps().Get(s.t.Context(), s.real(name), metav1.GetOptions{})
	s.must(err)
	return u
}

func (s *stage) get(name string) *v1alpha1.Application {
	s.t.Helper()
	a := &v1alpha1.Application{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(s.raw(name).Object, a))
	return a
}

// settled waits until an application is Synced to the commit and Healthy, and no operation is under way.
func (s *stage) settled(name, commit string) {
	s.t.Helper()
	s.until(name+" to be Synced to "+commit+" and Healthy", func() string {
		st := s.get(name).Status
		running := st.OperationState != nil && !st.OperationState.Phase.Completed()
		if st.Sync.Status == v1alpha1.SyncSynced && st.Sync.Revision == commit && st.Health.Status == v1alpha1.HealthHealthy && !running {
			return ""
		}
		return fmt.Sprintf("%s %s %s, conditions %v", st.Sync.Status, st.Sync.Revision, st.Health.Status, st.Conditions)
	})
}

// until waits for a condition, which says what is not so yet.
func (s *stage) until(what string, missing func() string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		why := missing()
		if why == "" {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("waited in vain for %s: %s", what, why)
		case <-tick.C:
		}
	}
}

func (s *stage) commit(files map[string]string) string {
	s.t.Helper()
	sha, err := s.repo.Commit(files, "change")
	s.must(err)
	return sha
}

func (s *stage) head() string {
	s.t.Helper()
	sha, err := s.repo.Resolve("main")
	s.must(err)
	return sha
}

// object reads what an application declares.
func (s *stage) object(apiVersion, plural, name string) *unstructured.Unstructured {
	s.t.Helper()
	gv, err := schema.ParseGroupVersion(apiVersion)
	s.must(err)
	u, err := s.client.Resource(gv.WithResource(plural)).Namespace(s.dest).Get(s.t.Context(), name, metav1.GetOptions{})
	s.must(err)
	return u
}

// pods are the uids of the pods, and what the Deployments say of them. A Deployment's generation would not do: it also
// counts changes of annotations, which taking over makes.
func (s *stage) pods() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	for gvr, mark := range map[schema.GroupVersionResource]func(*unstructured.Unstructured) string{
		{Version: "v1", Resource: "pods"}:                       func(u *unstructured.Unstructured) string { return string(u.GetUID()) },
		{Group: "apps", Version: "v1", Resource: "deployments"}: func(u *unstructured.Unstructured) string { return fmt.Sprint(u.Object["spec"]) },
	} {
		list, err := s.client.Resource(gvr).Namespace(s.dest).List(s.t.Context(), metav1.ListOptions{})
		s.must(err)
		for i := range list.Items {
			found[gvr.Resource+"/"+list.Items[i].GetName()] = mark(&list.Items[i])
		}
	}
	return found
}

func (s *stage) samePods(before map[string]string, when string) {
	s.t.Helper()
	if now := s.pods(); !maps.Equal(before, now) {
		s.t.Errorf("%s: pods and generations were %v and are %v", when, before, now)
	}
}

// dropFinalizers lets the namespaces go.
func (s *stage) dropFinalizers() {
	// The test's context has ended by now; the namespaces go in any case.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.apps().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.t.Log(err)
	}
}
