package cli_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lockstep-cd/lockstep/internal/cli"
)

// onTerminal runs a command for a person who looks at a terminal of 72 columns.
func (c *cluster) onTerminal(env map[string]string, args ...string) result {
	var out, errs output
	code := cli.Run(context.Background(), cli.Options{
		Out: &out, Err: &errs, Now: now, Terminal: true, Width: 72, Getenv: func(k string) string { return env[k] },
	}, c.args(args))
	return result{stdout: out.String(), stderr: errs.String(), code: code}
}

func TestTerminal(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", sick)
	coloured := c.onTerminal(nil, "app", "list")
	coloured.want(t, cli.CodeOK, "\x1b[31mDegraded\x1b[0m", "\x1b[33mOutOfSync\x1b[0m", "…")
	bare := c.onTerminal(map[string]string{"NO_COLOR": "1"}, "app", "list")
	bare.want(t, cli.CodeOK, "Degraded", "OutOfSync")
	if strings.Contains(bare.stdout, "\x1b") {
		t.Errorf("NO_COLOR is set and there is colour:\n%q", bare.stdout)
	}
	if dumb := c.onTerminal(map[string]string{"TERM": "dumb"}, "app", "list"); strings.Contains(dumb.stdout, "\x1b") {
		t.Errorf("a dumb terminal got colour:\n%q", dumb.stdout)
	}
	// Colour must not move columns: without its codes both outputs are one.
	plain := coloured.stdout
	for _, code := range []string{"\x1b[31m", "\x1b[33m", "\x1b[90m", "\x1b[32m", "\x1b[0m"} {
		plain = strings.ReplaceAll(plain, code, "")
	}
	if plain != bare.stdout {
		t.Errorf("with colour:\n%s\nwithout:\n%s", plain, bare.stdout)
	}
	for line := range strings.Lines(bare.stdout) {
		// The last column is cut, but never to less than can be read.
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 72+12 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestNamespaceFromTheEnvironment(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", healthy)
	var out, errs output
	code := cli.Run(context.Background(), cli.Options{
		Out: &out, Err: &errs, Now: now, Getenv: func(k string) string { return map[string]string{"LOCKSTEP_NAMESPACE": c.namespace}[k] },
	}, []string{"app", "list", "-o", "name", "--kubeconfig", c.kubeconfig})
	if code != cli.CodeOK || out.String() != c.namespace+"/shop\n" {
		t.Errorf("code %d, %q, %q", code, out.String(), errs.String())
	}
}

func TestHostileTextIsText(t *testing.T) {
	c := newCluster(t)
	c.create(t, "shop", sick)
	c.patch(t, "shop", map[string]any{"status": map[string]any{"health": map[string]any{"message": "clear \x1b[2J\x07 and\nnext"}}})
	r := c.lockstep("app", "list")
	r.want(t, cli.CodeOK, "clear [2J and next")
	if strings.ContainsAny(r.stdout, "\x1b\x07") {
		t.Errorf("control characters reach the terminal: %q", r.stdout)
	}
}

// At a terminal the person is asked; anything but a yes leaves everything as it is.
func TestLocalPruneIsAskedFor(t *testing.T) {
	c := newCluster(t)
	dir := checkout(t, map[string]string{"cm.yaml": newMap})
	c.create(t, "shop", healthy)
	run := func(answer string) (int, string) {
		var out, errs output
		code := cli.Run(t.Context(), cli.Options{In: strings.NewReader(answer), Out: &out, Err: &errs, Terminal: true, Now: now, Getenv: func(string) string { return "" }},
			c.args([]string{"app", "sync", "shop", "--local", dir, "--prune", "--async"}))
		return code, errs.String()
	}
	for _, answer := range []string{"", "n\n", "\n", "yess\n"} {
		if code, said := run(answer); code != cli.CodeError || !strings.Contains(said, "will be deleted") || !strings.Contains(said, "nothing was asked for") {
			t.Errorf("%q: code %d, %s", answer, code, said)
		}
	}
	if code, said := run("Y\n"); code != cli.CodeOK {
		t.Errorf("yes: code %d, %s", code, said)
	}
}
