package local

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ArgoCDOptions say how Argo CD is run.
type ArgoCDOptions struct {
	// Root is the folder of this module.
	Root string
	// Kubeconfig leads to the cluster, whose Namespace has Argo CD's settings and Applications.
	Kubeconfig, Namespace string
	// Dir takes its files and logs.
	Dir string
}

// ArgoCD is a real Argo CD: its application controller, its repo-server and a Redis, as processes outside the cluster.
type ArgoCD struct {
	parts []*Process
	logs  []string
}

// StartArgoCD starts Argo CD and waits until its servers listen; its first build takes minutes. The controller compares
// each application again every 5 seconds. Stop ends it.
func StartArgoCD(ctx context.Context, o ArgoCDOptions) (*ArgoCD, error) {
	binary, err := buildArgoCD(ctx, o.Root)
	if err != nil {
		return nil, err
	}
	a := &ArgoCD{}
	if err := a.start(ctx, binary, o); err != nil {
		a.Stop()
		return nil, err
	}
	return a, nil
}

// buildArgoCD builds Argo CD where that is not done already.
func buildArgoCD(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "dev", "argocd"))
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("dev/argocd: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (a *ArgoCD) start(ctx context.Context, binary string, o ArgoCDOptions) error {
	redis, err := freeAddress()
	if err != nil {
		return err
	}
	repo, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(repo)
	if err != nil {
		return err
	}
	common := []string{"--redis", redis, "--metrics-port", "0"}
	parts := []struct {
		args []string
		at   string
	}{
		{[]string{"redis", redis}, redis},
		{append([]string{"repo-server", "--address", "127.0.0.1", "--port", port, "--metrics-address", "127.0.0.1", "--disable-tls", "--client-ca-path=", "--revision-cache-expiration", "1s"}, common...), repo},
		{append([]string{
			"controller", "--repo-server", repo, "--repo-server-plaintext", "--app-resync", "5", "--app-resync-jitter", "0",
			"--self-heal-timeout-seconds", "1", "--kubeconfig", o.Kubeconfig, "--namespace", o.Namespace,
		}, common...), ""},
	}
	for _, part := range parts {
		if err := a.run(ctx, binary, o, part.args, part.at); err != nil {
			return err
		}
	}
	return nil
}

// run starts one part and waits until it listens at an address, where it has one.
func (a *ArgoCD) run(ctx context.Context, binary string, o ArgoCDOptions, args []string, at string) error {
	cmd := exec.Command(binary, args...)
	env, err := environment(o)
	if err != nil {
		return err
	}
	cmd.Env = env
	log := filepath.Join(o.Dir, args[0]+".log")
	p, err := Start("argocd "+args[0], cmd, log)
	if err != nil {
		return err
	}
	a.parts, a.logs = append(a.parts, p), append(a.logs, log)
	if at == "" {
		return nil
	}
	return listens(ctx, p, at)
}

// environment is what Argo CD finds in its image and its pod.
func environment(o ArgoCDOptions) ([]string, error) {
	for _, dir := range []string{"tls", "ssh", "gpg", "tmp", "bin"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o700); err != nil {
			return nil, fmt.Errorf("argocd: directory: %w", err)
		}
	}
	// Its image has a script that tells who signed a commit; here nobody has.
	bin := filepath.Join(o.Dir, "bin")
	if err := os.WriteFile(filepath.Join(bin, "git-verify-wrapper.sh"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		return nil, fmt.Errorf("argocd: %w", err)
	}
	return append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"ARGOCD_FAKE_IN_CLUSTER=true", "KUBECONFIG="+o.Kubeconfig, "ARGOCD_GPG_ENABLED=false",
		"ARGOCD_TLS_DATA_PATH="+filepath.Join(o.Dir, "tls"), "ARGOCD_SSH_DATA_PATH="+filepath.Join(o.Dir, "ssh"),
		"ARGOCD_GNUPGHOME="+filepath.Join(o.Dir, "gpg"), "TMPDIR="+filepath.Join(o.Dir, "tmp"),
		"ARGOCD_CONTROLLER_REPLICAS=1"), nil
}

func listens(ctx context.Context, p *Process, address string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.Exited():
			return p.Ended()
		case <-ctx.Done():
			return fmt.Errorf("argocd: nobody listens at %s: %w", address, ctx.Err())
		case <-tick.C:
		}
	}
}

// Log is the end of what the parts said.
func (a *ArgoCD) Log(lines int) string {
	var b strings.Builder
	for _, log := range a.logs {
		fmt.Fprintf(&b, "%s:\n%s\n", filepath.Base(log), Tail(log, lines))
	}
	return b.String()
}

// Stop ends Argo CD, the controller first. A second call does nothing.
func (a *ArgoCD) Stop() {
	for i := len(a.parts) - 1; i >= 0; i-- {
		a.parts[i].Kill() // nothing of it is needed again
	}
	a.parts = nil
}
