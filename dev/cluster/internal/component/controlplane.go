package component

import (
	"fmt"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics of the components
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// runControllerManager runs all default controllers, each with its own service
// account as in a real cluster. It serves nothing (port 0): its effects are its health.
func runControllerManager() error {
	cmd := kcm.NewControllerManagerCommand()
	cmd.SetArgs([]string{
		"--kubeconfig=conf/controller-manager.kubeconfig",
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--root-ca-file=pki/ca.crt",
		"--service-account-private-key-file=pki/tokens.key",
		"--cluster-signing-cert-file=pki/ca.crt", "--cluster-signing-key-file=pki/ca.key",
		"--allocate-node-cidrs=false",
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--kube-api-qps=2000", "--kube-api-burst=4000",
		"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
		"--concurrent-namespace-syncs=20", "--concurrent-gc-syncs=20",
		"--profiling=false",
		"--v=1",
	})
	return exit(layout.Controller, cli.Run(cmd))
}

// runScheduler is the upstream scheduler plus one plugin, for pods that are to stay
// unschedulable.
func runScheduler() error {
	cmd := scheduler.NewSchedulerCommand(scheduler.WithPlugin(unschedulableName, newUnschedulable))
	cmd.SetArgs([]string{"--config=conf/scheduler.yaml", "--secure-port=0", "--v=1"})
	return exit(layout.Scheduler, cli.Run(cmd))
}

func exit(name string, code int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: exit code %d", name, code)
}

// SchedulerConfig is the content of conf/scheduler.yaml.
const SchedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
enableProfiling: false
clientConnection:
  kubeconfig: conf/scheduler.kubeconfig
  qps: 2000
  burst: 4000
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: ` + unschedulableName + `
`

// EgressConfig is the content of conf/egress.yaml: calls of the API server into the
// cluster (kubelets, webhooks, aggregated APIs) go through the supervisor's proxy.
const EgressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: ` + layout.EgressSock + `
`
