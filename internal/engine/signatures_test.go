package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/test/gitserver"
)

// signer signs commits of a repository of the test's Git server with an ssh key, as people do.
type signer struct {
	t      *testing.T
	dir    string
	public string
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{t: t, dir: t.TempDir()}
	s.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "id")
	key, err := os.ReadFile(filepath.Join(s.dir, "id.pub"))
	if err != nil {
		t.Fatal(err)
	}
	s.public = string(key)
	return s
}

func (s *signer) run(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// sign puts a signed commit with the same files on top of main.
func (s *signer) sign(r *gitserver.Repo) string {
	s.t.Helper()
	git := []string{"--git-dir=" + r.Dir(), "-c", "safe.directory=*", "-c", "gpg.format=ssh", "-c", "user.signingKey=" + filepath.Join(s.dir, "id")}
	id := s.run("git", append(git, "commit-tree", "-S", "-p", "main", "-m", "signed", "main^{tree}")...)
	if err := r.SetBranch("main", id); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// A project that demands signatures gets the commits that one of its keys has signed, and no other; taking the key away
// stops what comes, and takes nothing away from the cluster.
func TestProjectDemandsSignatures(t *testing.T) {
	w := newWorld(t)
	s := newSigner(t)
	r := w.repo("signed", map[string]string{"app/a.yaml": configMap("a", "1")})
	w.project("careful", map[string]any{"signatureKeys": []any{map[string]any{"keyID": "ada"}}})
	w.create("configmaps", map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "argocd-gpg-keys-cm"}, "data": map[string]any{"ada": s.public},
	})
	w.app("s", v1alpha1.ApplicationSource{RepoURL: r.URL(), Path: "app"}, func(a *v1alpha1.Application) { a.Spec.Project = "careful" })
	w.condition("s", v1alpha1.ConditionComparisonError, r.URL(), "is not signed", "the project demands signed commits")
	if _, there := w.configMap("a"); there {
		t.Error("an unsigned commit was applied")
	}
	w.settled("s", s.sign(r))
	keys := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(w.control)
	patch(w, keys, "argocd-gpg-keys-cm", `{"data":{"ada":null}}`)
	w.condition("s", v1alpha1.ConditionComparisonError, "argocd-gpg-keys-cm does not have")
	if _, there := w.configMap("a"); !there {
		t.Error("a key that was taken away took an object away")
	}
	patch(w, keys, "argocd-gpg-keys-cm", `{"data":{"ada":"`+strings.TrimSpace(s.public)+`"}}`)
	w.settled("s", "")
	// Strict: the first commit was never signed.
	patch(w, w.projects(), "careful", `{"spec":{"signatureKeys":null,"sourceIntegrity":{"git":{"policies":[{"repos":[{"url":"*"}],"gpg":{"mode":"strict","keys":["ada"]}}]}}}}`)
	w.condition("s", v1alpha1.ConditionComparisonError, "is not signed")
	patch(w, w.projects(), "careful", `{"spec":{"sourceIntegrity":{"git":{"policies":[{"repos":[{"url":"*"}],"gpg":{"mode":"head","keys":["ada"]}}]}}}}`)
	w.settled("s", "")
}
