package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/cli"
)

func TestServeUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"+
		"clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, text := range map[string]string{
		"--workers 0":                   "--workers 0: is not between 1 and 1000",
		"--workers 5000":                "--workers 5000: is not between 1 and 1000",
		"--poll-interval 1ms":           "--poll-interval 1ms: is shorter than a second",
		"--poll-interval often":         "--poll-interval",
		"--listen 80":                   "--listen 80: is no HOST:PORT",
		"--log-format xml":              "--log-format xml: is neither text nor json",
		"--log-level loud":              "--log-level loud: is none of debug, info, warn, error",
		"--local-repositories /no/such": "--local-repositories /no/such: is no folder of this machine",
		"now":                           `unknown command "now"`,
	} {
		t.Run(args, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			r := lockstep(append([]string{"serve", "--kubeconfig", file, "--data-dir", data}, strings.Fields(args)...)...)
			r.want(t, cli.CodeUsage, text, "Run 'lockstep serve --help'")
			if _, err := os.Stat(data); err == nil {
				t.Error("the data directory was made")
			}
		})
	}
	lockstep("serve", "--kubeconfig", file, "--context", "b").want(t, cli.CodeError, `"b"`)
}

// The command runs until it is interrupted, tells where it listens, and ends well.
func TestServeUntilInterrupted(t *testing.T) {
	c := newCluster(t)
	r := c.start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--identity", "lockstep-0", "--log-format", "json")
	until(t, "it works", func() bool { return strings.Contains(r.errs.String(), `"msg":"working"`) })
	got := r.end()
	got.want(t, cli.CodeOK, `"msg":"serving","component":"app","address":"127.0.0.1:`, `"msg":"stopped"`)
	if got.stdout != "" {
		t.Errorf("a log on stdout: %s", got.stdout)
	}
}
