// Package component runs one process of a local cluster: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler or the nodes. Each function takes over the
// process until it is told to stop by a signal. The package knows the flags of the
// components; it starts no process and knows nothing of the supervisor.
package component

import (
	"fmt"
	"strconv"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// Params is what a component has to know beyond the files of the cluster's
// directory, which is its working directory.
type Params struct {
	// APIPort is the port of the API server on 127.0.0.1.
	APIPort int
	// Nodes is the number of nodes to keep.
	Nodes int
}

// Args renders p as command-line arguments, for Parse.
func (p Params) Args() []string {
	return []string{strconv.Itoa(p.APIPort), strconv.Itoa(p.Nodes)}
}

// Parse reads what Args wrote.
func Parse(args []string) (Params, error) {
	if len(args) != 2 {
		return Params{}, fmt.Errorf("component parameters: want 2, have %d", len(args))
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return Params{}, fmt.Errorf("component parameter port: %w", err)
	}
	nodes, err := strconv.Atoi(args[1])
	if err != nil {
		return Params{}, fmt.Errorf("component parameter nodes: %w", err)
	}
	return Params{APIPort: port, Nodes: nodes}, nil
}

// Run runs the component called name until a signal ends it.
func Run(name string, p Params) error {
	switch name {
	case layout.Etcd:
		return runEtcd()
	case layout.APIServer:
		return runAPIServer(p)
	case layout.Controller:
		return runControllerManager()
	case layout.Scheduler:
		return runScheduler()
	case layout.Nodes:
		return runNodes(p)
	}
	return fmt.Errorf("component %q: unknown, want one of %v", name, layout.Components())
}
