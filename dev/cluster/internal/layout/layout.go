// Package layout owns the names of the files and the reserved addresses of one
// local cluster. It depends on nothing of ours and touches no file.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
)

// Component names, as the command line and the fault commands spell them.
const (
	Etcd       = "etcd"
	APIServer  = "kube-apiserver"
	Controller = "kube-controller-manager"
	Scheduler  = "kube-scheduler"
	Nodes      = "kwok"
)

// Components lists every process below the supervisor in the order of their start.
func Components() []string {
	return []string{Etcd, APIServer, Controller, Scheduler, Nodes}
}

// Addresses that exist only inside the cluster. They come from ranges reserved for
// documentation (RFC 5737), so that a mistake never reaches a real machine: the
// egress proxy of the supervisor is the only thing that knows them.
const (
	// HostIP stands for this machine's loopback interface: HostIP:P is 127.0.0.1:P.
	// EndpointSlices refuse 127.0.0.1 itself.
	HostIP = "192.0.2.1"
	// NodeNet is the network of the nodes; node i is NodeNet.i.
	NodeNet = "198.51.100"
	// LoadBalancerNet is where addresses of load balancers come from (a /16 of the
	// range reserved for benchmarks, RFC 2544).
	LoadBalancerNet = "198.18"
	// ServiceCIDR and PodCIDR are the usual ranges of Services and Pods.
	ServiceCIDR = "10.96.0.0/16"
	PodCIDR     = "10.244.0.0/16"
	// APIServiceIP is the first address of ServiceCIDR.
	APIServiceIP = "10.96.0.1"
	// KubeletPort is the port that nodes announce.
	KubeletPort = 10250
)

// MaxNodes is how many nodes fit into NodeNet, leaving room for 1-based numbers.
const MaxNodes = 250

// NodeIP is the address of node number i, counted from 1.
func NodeIP(i int) string { return fmt.Sprintf("%s.%d", NodeNet, i) }

// NodeName is the name of node number i, counted from 1.
func NodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// Files inside a cluster's directory. Processes below the supervisor use them as
// relative names with the directory as their working directory: a Unix socket's
// path may not be longer than about 100 bytes, a test's temporary directory can be.
const (
	StateFile   = "devcluster.json"
	LockFile    = "lock"
	Kubeconfig  = "kubeconfig"
	PKI         = "pki"
	Conf        = "conf"
	Logs        = "logs"
	EtcdData    = "etcd"
	EtcdSock    = "etcd.sock"
	EtcdPeer    = "etcd-peer.sock"
	EgressSock  = "egress.sock"
	KubeletSock = "kubelet.sock"
	ControlSock = "control.sock"
	FaultsFile  = "faults.json"
)

// Owned lists all entries that a cluster creates in its directory, for removal.
func Owned() []string {
	return []string{StateFile, Kubeconfig, PKI, Conf, Logs, EtcdData, EtcdSock, EtcdPeer,
		EgressSock, KubeletSock, ControlSock, FaultsFile}
}

// DefaultDir is the directory of the cluster called name, below the user's cache.
func DefaultDir(name string) (string, error) {
	base := os.Getenv("LOCKSTEP_CACHE")
	if base == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("user's cache directory: %w", err)
		}
		base = filepath.Join(cache, "lockstep")
	}
	return filepath.Join(base, "clusters", name), nil
}
