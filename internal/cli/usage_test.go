package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/lockstep-cd/lockstep/internal/cli"
	"github.com/lockstep-cd/lockstep/internal/client"
)

// With LOCKSTEP_UPDATE set it writes the page anew.
func TestReference(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "cli.md")
	var got bytes.Buffer
	cli.WriteReference(&got, cli.New(cli.Options{}))
	if os.Getenv("LOCKSTEP_UPDATE") != "" {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("docs/cli.md is not what the commands say; run make generate (-file +commands):\n%s", diff)
	}
}

// Scripts rely on these lines; a change of one is a change of the interface.
func TestUsageLines(t *testing.T) {
	want := []string{
		"lockstep adopt NAME... | -l SELECTOR | --project PROJECT",
		"lockstep app diff NAME",
		"lockstep app get NAME",
		"lockstep app history NAME",
		"lockstep app list",
		"lockstep app sync NAME... | -l SELECTOR | --project PROJECT",
		"lockstep app terminate NAME",
		"lockstep app wait NAME... | -l SELECTOR | --project PROJECT",
		"lockstep install",
		"lockstep release NAME... | -l SELECTOR | --project PROJECT",
		"lockstep render DIR | render -f application.yaml [DIR]",
		"lockstep serve",
		"lockstep shadow [NAME... | -l SELECTOR | --project PROJECT]",
		"lockstep version",
	}
	lines := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() {
			lines[strings.TrimSuffix(cmd.UseLine(), " [flags]")] = true
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cli.New(cli.Options{}))
	for _, line := range want {
		if !lines[line] {
			t.Errorf("no command %q; there are %v", line, lines)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	cases := []struct {
		args string
		text string
	}{
		{"app sync", "no application is named"},
		{"app wait", "no application is named"},
		{"app sync shop -l a=b", "exclude each other"},
		{"app sync shop --strategy fast", "hook or apply"},
		{"app sync shop --resource Deployment/web", "GROUP:KIND:NAME"},
		{"app sync shop --retry-limit -2", "-1 or more"},
		{"app get", "accepts 1 arg"},
		{"app get a/b/c", "NAMESPACE/NAME"},
		{"app lst", `did you mean "list"?`},
		{"app list --no-such-flag", "unknown flag"},
		{"verison", `did you mean "version"?`},
		{"version -o table", "unknown format"},
	}
	for _, test := range cases {
		t.Run(test.args, func(t *testing.T) {
			r := lockstep(strings.Fields(test.args)...)
			r.want(t, cli.CodeUsage, test.text, "--help' for what it takes.")
			if r.stdout != "" {
				t.Errorf("an error on stdout: %s", r.stdout)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for code, err := range map[int]error{
		cli.CodeOK:          nil,
		cli.CodeError:       errors.New("anything"),
		cli.CodeUsage:       fmt.Errorf("a: %w", client.ErrInvalid),
		cli.CodeNotFound:    fmt.Errorf("a: %w", client.ErrNotFound),
		cli.CodeRefused:     fmt.Errorf("a: %w", client.ErrInProgress),
		cli.CodeUnreachable: fmt.Errorf("a: %w", client.ErrUnreachable),
	} {
		if got := cli.ExitCode(err); got != code {
			t.Errorf("%v: %d, want %d", err, got, code)
		}
	}
	r := lockstep("help", "exit-codes")
	r.want(t, cli.CodeOK, "  7  refused")
}

func TestClusterIsAway(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	config := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n" +
		"clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	lockstep("app", "list", "--kubeconfig", file).want(t, cli.CodeUnreachable, "cluster https://127.0.0.1:1: not reachable: dial tcp")
	lockstep("app", "list", "--kubeconfig", filepath.Join(dir, "none")).want(t, cli.CodeError, "kubeconfig:")
	lockstep("app", "list", "--kubeconfig", file, "--context", "b").want(t, cli.CodeError, `"b"`)
}

func TestVersion(t *testing.T) {
	lockstep("version", "-o", "json").want(t, cli.CodeOK, `"version": "dev"`, `"platform"`)
}
