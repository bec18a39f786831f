package signature_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/signature"
)

// work is a Git repository with keys made by the real programs.
type work struct {
	t        *testing.T
	dir      string
	pgp      string // fingerprint
	armored  string
	sshKey   string // public
	sshPrint string
}

func (w *work) run(name string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GNUPGHOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func newWork(t *testing.T) *work {
	t.Helper()
	dir, err := os.MkdirTemp("", "sig") // gpg's agent wants a short path for its socket
	if err != nil {
		t.Fatal(err)
	}
	w := &work{t: t, dir: dir}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", dir, "--kill", "gpg-agent").Run() // gone already is well, too
		_ = os.RemoveAll(dir)
	})
	w.run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Ada <ada@example.org>", "ed25519", "sign", "never")
	for line := range strings.Lines(w.run("gpg", "--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" && w.pgp == "" {
			w.pgp = f[9]
		}
	}
	w.armored = w.run("gpg", "--armor", "--export", w.pgp)
	w.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "id")
	key, err := os.ReadFile(filepath.Join(dir, "id.pub"))
	if err != nil {
		t.Fatal(err)
	}
	w.sshKey, w.sshPrint = string(key), strings.Fields(w.run("ssh-keygen", "-lf", "id.pub"))[1]
	w.run("git", "init", "--quiet", "repo")
	return w
}

// commit makes a commit with git itself and gives its object.
func (w *work) commit(args ...string) []byte {
	w.t.Helper()
	w.run("git", append(append([]string{"-C", "repo"}, args...), "-m", "change\n\n-----BEGIN PGP SIGNATURE-----\n not one")...)
	return []byte(w.run("git", "-C", "repo", "cat-file", "commit", "HEAD"))
}

func (w *work) byPGP() []byte {
	return w.commit("-c", "user.signingKey="+w.pgp, "commit", "--quiet", "--allow-empty", "-S")
}

func (w *work) bySSH() []byte {
	return w.commit("-c", "gpg.format=ssh", "-c", "user.signingKey="+filepath.Join(w.dir, "id"), "commit", "--quiet", "--allow-empty", "-S")
}

// What git signs with gpg and with ssh-keygen is accepted by the right key and by no other.
func TestCommits(t *testing.T) {
	w := newWork(t)
	plain, pgp, ssh := w.commit("commit", "--quiet", "--allow-empty"), w.byPGP(), w.bySSH()
	all := signature.NewRing(map[string]string{w.pgp[24:]: w.armored, "ada": w.sshKey, "junk": "junk"})
	if b := all.Broken(); len(b) != 1 || b[0] != "junk" {
		t.Errorf("broken keys: %v", b)
	}
	none := signature.NewRing(nil)
	changed := func(raw []byte) []byte { return []byte(strings.Replace(string(raw), "change", "chance", 1)) }
	now := time.Now()
	for name, c := range map[string]struct {
		ring    *signature.Ring
		raw     []byte
		allowed []string
		now     time.Time
		want    string
	}{
		"pgp by key id":      {all, pgp, []string{w.pgp[24:]}, now, ""},
		"pgp by fingerprint": {all, pgp, []string{"other", strings.ToLower(w.pgp)}, now, ""},
		"pgp by 0x":          {all, pgp, []string{"0x" + w.pgp[24:]}, now, ""},
		"pgp, short id":      {all, pgp, []string{w.pgp[32:]}, now, "which the project does not name"},
		"pgp, other key":     {all, pgp, []string{"0123456789ABCDEF"}, now, "is signed by key " + w.pgp[24:] + ", which the project does not name"},
		"pgp, no key named":  {all, pgp, nil, now, "which the project does not name"},
		"pgp, not in ring":   {none, pgp, []string{w.pgp}, now, "argocd-gpg-keys-cm does not have"},
		"pgp, changed":       {all, changed(pgp), []string{w.pgp}, now, "does not hold"},
		"pgp, of the future": {all, pgp, []string{w.pgp}, now.Add(-24 * time.Hour), "does not hold"},
		"ssh by fingerprint": {all, ssh, []string{w.sshPrint}, now, ""},
		"ssh by name":        {all, ssh, []string{"ada"}, now, ""},
		"ssh, other key":     {all, ssh, []string{"eve"}, now, "is signed by ssh key " + w.sshPrint + ", which the project does not name"},
		"ssh, not in ring":   {none, ssh, []string{w.sshPrint}, now, "argocd-gpg-keys-cm does not have"},
		"ssh, changed":       {all, changed(ssh), []string{"ada"}, now, "does not hold"},
		"unsigned":           {all, plain, []string{w.pgp, "ada"}, now, "is not signed"},
		"unknown kind":       {all, []byte("tree x\ngpgsig -----BEGIN SIGNED MESSAGE-----\n x\n\nm"), []string{"ada"}, now, "of a kind that is not known"},
		"broken ssh":         {all, []byte("tree x\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\n\nm"), []string{"ada"}, now, "can't be read"},
	} {
		err := c.ring.Commit(c.raw, c.allowed, c.now)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !errors.Is(err, signature.ErrUntrusted)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A signature that was made for a file does not count for a commit.
func TestSSHSignatureForSomethingElse(t *testing.T) {
	w := newWork(t)
	plain := w.commit("commit", "--quiet", "--allow-empty")
	if err := os.WriteFile(filepath.Join(w.dir, "payload"), plain, 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("ssh-keygen", "-Y", "sign", "-n", "file", "-f", "id", "payload")
	sig, err := os.ReadFile(filepath.Join(w.dir, "payload.sig"))
	if err != nil {
		t.Fatal(err)
	}
	header := "gpgsig " + strings.ReplaceAll(strings.TrimSuffix(string(sig), "\n"), "\n", "\n ") + "\n\n"
	raw := strings.Replace(string(plain), "\n\n", "\n"+header, 1)
	err = signature.NewRing(map[string]string{"ada": w.sshKey}).Commit([]byte(raw), []string{"ada"}, time.Now())
	if err == nil || !strings.Contains(err.Error(), `made for "file"`) {
		t.Errorf("%v", err)
	}
}
