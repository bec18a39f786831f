// Command test runs every check of the repository against one real local cluster: it builds and starts the cluster, vets
// and tests the root module with the race detector, lets the fuzz tests make up input for a while, then tests the module of
// the local cluster itself, and stops what it started. It is what `make test` and `make soak` run; it imports nothing of ours.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	// rounds is how often the tests of the root module run.
	rounds int
	// shuffle runs tests in random order.
	shuffle bool
	// timeout of one package's tests, in go test's sense.
	timeout time.Duration
	// fuzz is how many inputs each fuzz test makes up; 0 leaves that out.
	fuzz int
	// run selects tests by name, as go test -run does; empty runs all.
	run string
	// packages of the root module.
	packages []string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 1, "how often the tests of the root module run")
	flag.BoolVar(&o.shuffle, "shuffle", false, "run tests in random order")
	flag.DurationVar(&o.timeout, "timeout", 45*time.Minute, "limit for the tests of one package")
	flag.IntVar(&o.fuzz, "fuzz", 5000, "how many inputs each fuzz test makes up in a run of everything; 0 leaves it out")
	flag.StringVar(&o.run, "run", "", "run only tests whose names match; leaves out the local cluster's own")
	flag.Parse()
	o.packages = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "test: %v\n", err)
		os.Exit(1)
	}
}

// run goes on after a step that found something, so that one run shows all there is to mend.
func run(ctx context.Context, o options) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	r := &runner{root: root, started: time.Now()}
	if err := r.step(ctx, "build the local cluster", command{args: []string{"dev/devcluster", "--build-only"}}); err != nil {
		return err
	}
	whole := len(o.packages) == 0
	if whole {
		o.packages = []string{"./..."}
	}
	var broken []string
	note := func(name string, err error) {
		if err != nil {
			fmt.Printf("--- %s: %v\n", name, err)
			broken = append(broken, name)
		}
	}
	// Built before the tests, so that no test's time runs out over it.
	note("Argo CD", r.step(ctx, "build the Argo CD that adoption is tested against", command{args: []string{"dev/argocd"}}))
	note("go vet", r.step(ctx, "vet", command{args: append([]string{"go", "vet"}, o.packages...)}))
	note("tests", r.withCluster(ctx, func(kubeconfig string) error {
		return r.step(ctx, "test with the race detector", command{
			args: o.goTest(), env: []string{"CGO_ENABLED=1", "LOCKSTEP_TEST_KUBECONFIG=" + kubeconfig},
		})
	}))
	if whole && o.run == "" && o.fuzz > 0 {
		for _, f := range r.fuzzTests(note) {
			note("fuzz "+f.name, r.step(ctx, "fuzz", command{args: f.command(o.fuzz)}))
		}
	}
	if whole && o.run == "" && ctx.Err() == nil {
		note("tests of dev/cluster", r.step(ctx, "test the local cluster itself", clusterTests()))
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(broken) > 0 {
		return fmt.Errorf("%s: see above", strings.Join(broken, ", "))
	}
	r.say("all passed")
	return nil
}

func (o options) goTest() []string {
	args := []string{"go", "test", "-race", fmt.Sprintf("-count=%d", o.rounds), "-timeout=" + o.timeout.String()}
	if o.shuffle {
		args = append(args, "-shuffle=on")
	}
	if o.run != "" {
		args = append(args, "-run="+o.run)
	}
	return append(args, o.packages...)
}

// clusterTests has the flags that dev/devcluster builds with: with others the go command would compile all of Kubernetes
// a second time.
func clusterTests() command {
	return command{
		dir:  "dev/cluster",
		args: []string{"go", "test", "-trimpath", "-count=1", "-timeout=20m", "./..."},
		env:  []string{"CGO_ENABLED=0"},
	}
}

type runner struct {
	root    string
	started time.Time
}

func (r *runner) say(format string, args ...any) {
	d := time.Since(r.started).Round(time.Second)
	fmt.Printf("==> [%s] %s\n", d, fmt.Sprintf(format, args...))
}

// command is one program to run, in a folder below the root, with variables added to the environment.
type command struct {
	dir  string
	args []string
	env  []string
}

func (r *runner) step(ctx context.Context, what string, c command) error {
	r.say("%s: %s", what, strings.Join(c.args, " "))
	return r.command(ctx, c).Run()
}

// command ends with ctx: interrupted first, killed after a while.
func (r *runner) command(ctx context.Context, c command) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	if strings.Contains(c.args[0], "/") {
		cmd.Path = filepath.Join(r.root, c.args[0])
	}
	cmd.Dir = filepath.Join(r.root, c.dir)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("working directory: not in a Go module; run make test in the repository")
	}
	return filepath.Dir(mod), nil
}
