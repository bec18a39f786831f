package component

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/faults"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// runAPIServer is the upstream server with one addition: a filter in front of its
// handler chain that answers with the faults asked for (package faults).
func runAPIServer(p Params) error {
	ctx := genericapiserver.SetupSignalContext()
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet(layout.APIServer, pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(apiServerFlags(p)); err != nil {
		return fmt.Errorf("kube-apiserver: flags: %w", err)
	}
	completed, err := completeAPIServer(ctx, opts)
	if err != nil {
		return err
	}
	return serveAPI(ctx, completed)
}

func completeAPIServer(ctx context.Context, opts *options.ServerRunOptions) (options.CompletedOptions, error) {
	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return options.CompletedOptions{}, fmt.Errorf("kube-apiserver: feature gates: %w", err)
	}
	// The server's own clients would log every deprecation that they cause themselves.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	gate := registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gate); err != nil {
		return options.CompletedOptions{}, fmt.Errorf("kube-apiserver: logging: %w", err)
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("kube-apiserver: options: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return options.CompletedOptions{}, fmt.Errorf("kube-apiserver: options: %w", utilerrors.NewAggregate(errs))
	}
	return completed, nil
}

func serveAPI(ctx context.Context, opts options.CompletedOptions) error {
	config, err := app.NewConfig(opts)
	if err != nil {
		return fmt.Errorf("kube-apiserver: configuration: %w", err)
	}
	// The aggregator is the outermost of the three servers: its chain sees everything.
	outer := config.Aggregator.GenericConfig
	build := outer.BuildHandlerChainFunc
	outer.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return faults.Filter(build(api, c), c.RequestInfoResolver, layout.FaultsFile)
	}
	complete, err := config.Complete()
	if err != nil {
		return fmt.Errorf("kube-apiserver: configuration: %w", err)
	}
	server, err := app.CreateServerChain(complete)
	if err != nil {
		return fmt.Errorf("kube-apiserver: create: %w", err)
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return fmt.Errorf("kube-apiserver: prepare: %w", err)
	}
	return prepared.Run(ctx)
}

func apiServerFlags(p Params) []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.APIPort),
		// The address in the endpoints of the Service kubernetes; the egress proxy maps
		// it back, so that in-cluster addresses work for the API server's own calls.
		"--advertise-address=" + layout.HostIP,
		"--etcd-servers=unix://" + layout.EtcdSock,
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--client-ca-file=pki/ca.crt",
		"--tls-cert-file=pki/apiserver.crt", "--tls-private-key-file=pki/apiserver.key",
		"--kubelet-certificate-authority=pki/ca.crt",
		"--kubelet-client-certificate=pki/kubelet-client.crt", "--kubelet-client-key=pki/kubelet-client.key",
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=pki/tokens.pub", "--service-account-signing-key-file=pki/tokens.key",
		"--proxy-client-cert-file=pki/front-proxy.crt", "--proxy-client-key-file=pki/front-proxy.key",
		"--requestheader-client-ca-file=pki/front-proxy-ca.crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		// There is no kube-proxy: the server itself goes from a Service to its endpoints.
		"--enable-aggregator-routing=true",
		"--egress-selector-config-file=conf/egress.yaml",
		"--profiling=false",
		// The server must not be what limits a benchmark.
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
		"--v=1",
	}
}
