package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/component"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/pki"
)

// State is the content of the state file: how other commands find a cluster.
type State struct {
	Name string `json:"name"`
	// PID is the supervisor's process.
	PID    int    `json:"pid"`
	Port   int    `json:"port"`
	Nodes  int    `json:"nodes"`
	Server string `json:"server"`
}

// ReadState reads the state of the cluster in dir.
func ReadState(dir string) (State, error) {
	data, err := os.ReadFile(filepath.Join(dir, layout.StateFile))
	if err != nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("%s: %w", filepath.Join(dir, layout.StateFile), err)
	}
	return s, nil
}

// prepare takes the directory and fills it with certificates and configuration.
func (s *Supervisor) prepare() error {
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("cluster %s: directory: %w", s.opts.Name, err)
	}
	if err := os.Chdir(s.opts.Dir); err != nil {
		return fmt.Errorf("cluster %s: directory: %w", s.opts.Name, err)
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	if err := s.wipe(); err != nil {
		return err
	}
	for _, dir := range []string{layout.PKI, layout.Conf, layout.Logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cluster %s: directory: %w", s.opts.Name, err)
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	s.port = port
	if err := s.writePKI(); err != nil {
		return fmt.Errorf("cluster %s: certificates: %w", s.opts.Name, err)
	}
	return s.writeState()
}

// takeLock takes the directory's lock for the life of this process.
func (s *Supervisor) takeLock() error {
	file, err := os.OpenFile(layout.LockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("cluster %s: lock: %w", s.opts.Name, err)
	}
	// Never closed: the kernel gives the lock back when the process ends, however it ends.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return fmt.Errorf("cluster %s: already running in %s", s.opts.Name, s.opts.Dir)
	}
	s.lock = file
	return nil
}

// wipe removes what an earlier cluster left, unless it is to be kept. It refuses a
// directory that is in use for something else.
func (s *Supervisor) wipe() error {
	entries, err := os.ReadDir(".")
	if err != nil {
		return fmt.Errorf("cluster %s: directory: %w", s.opts.Name, err)
	}
	var foreign []string
	for _, e := range entries {
		if e.Name() != layout.LockFile && e.Name() != bootLog {
			foreign = append(foreign, e.Name())
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	if _, err := os.Stat(layout.StateFile); err != nil {
		return fmt.Errorf("cluster %s: directory %s is not a cluster's and not empty (%s)", s.opts.Name, s.opts.Dir, foreign[0])
	}
	if s.opts.Keep {
		return nil
	}
	return removeOwned()
}

// bootLog is where a detached supervisor logs.
const bootLog = "supervisor.log"

func removeOwned() error {
	for _, name := range layout.Owned() {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}

// cleanUp removes the cluster's data after the end, unless it is to be kept.
func (s *Supervisor) cleanUp() error {
	if s.opts.Keep {
		return nil
	}
	if err := removeOwned(); err != nil {
		return fmt.Errorf("cluster %s: %w", s.opts.Name, err)
	}
	return nil
}

func (s *Supervisor) writeState() error {
	data, err := json.MarshalIndent(State{Name: s.opts.Name, PID: os.Getpid(), Port: s.port, Nodes: s.opts.Nodes, Server: s.Server()}, "", "  ")
	if err != nil {
		return fmt.Errorf("cluster %s: state: %w", s.opts.Name, err)
	}
	if err := os.WriteFile(layout.StateFile, data, 0o600); err != nil {
		return fmt.Errorf("cluster %s: state: %w", s.opts.Name, err)
	}
	return nil
}

// writePKI makes everything that is signed, once per cluster; a kept cluster keeps its
// CA, or the tokens in it would be void. Kubeconfigs are written anew, with the port.
func (s *Supervisor) writePKI() error {
	if _, err := os.Stat(layout.PKI + "/done"); err == nil {
		return s.moveServer()
	}
	ca, err := pki.NewCA(layout.PKI, "ca")
	if err != nil {
		return err
	}
	front, err := pki.NewCA(layout.PKI, "front-proxy-ca")
	if err != nil {
		return err
	}
	nodes := []string{}
	for i := 1; i <= layout.MaxNodes; i++ {
		nodes = append(nodes, layout.NodeIP(i))
	}
	api := []string{"127.0.0.1", "localhost", layout.HostIP, layout.APIServiceIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	err = errors.Join(
		ca.Server(layout.PKI, "apiserver", api),
		ca.Server(layout.PKI, "kubelet", nodes),
		ca.WriteClient(layout.PKI, "kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
		front.WriteClient(layout.PKI, "front-proxy", "front-proxy-client"),
		pki.WriteTokenKey(layout.PKI, "tokens"),
		s.writeKubeconfig(ca, layout.Kubeconfig, "admin", "system:masters"),
		s.writeKubeconfig(ca, "conf/controller-manager.kubeconfig", "system:kube-controller-manager"),
		s.writeKubeconfig(ca, "conf/scheduler.kubeconfig", "system:kube-scheduler"),
		s.writeKubeconfig(ca, "conf/nodes.kubeconfig", "devcluster:nodes", "system:masters"),
		os.WriteFile("conf/egress.yaml", []byte(component.EgressConfig), 0o600),
		os.WriteFile("conf/scheduler.yaml", []byte(component.SchedulerConfig), 0o600),
	)
	if err != nil {
		return err
	}
	return os.WriteFile(layout.PKI+"/done", nil, 0o600)
}

func kubeconfigs() []string {
	return []string{layout.Kubeconfig, "conf/controller-manager.kubeconfig", "conf/scheduler.kubeconfig", "conf/nodes.kubeconfig"}
}

// moveServer points the kubeconfigs of a kept cluster at its new port.
func (s *Supervisor) moveServer() error {
	for _, path := range kubeconfigs() {
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			return err
		}
		for _, c := range config.Clusters {
			c.Server = s.Server()
		}
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Supervisor) writeKubeconfig(ca *pki.CA, path, user string, groups ...string) error {
	pair, err := ca.Client(user, groups...)
	if err != nil {
		return err
	}
	name := "devcluster-" + s.opts.Name
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: s.Server(), CertificateAuthorityData: ca.PEM()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

// freePort finds a port for the API server below the range from which the system takes
// ports for outgoing connections: nobody gets it by accident, also not while the API
// server is down for a moment.
func freePort() (int, error) {
	const low, high, tries = 20000, 30000, 200
	for range tries {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d", low, high)
}

// newProcess describes the process of one component.
func (s *Supervisor) newProcess(name string, log io.Writer) *process {
	params := component.Params{APIPort: s.port, Nodes: s.opts.Nodes}
	return &process{
		name:    name,
		args:    append([]string{"component", name}, params.Args()...),
		dir:     s.opts.Dir,
		env:     memoryEnv(name),
		log:     log,
		spawner: s.spawner,
	}
}

// memoryEnv tunes Go's collector. The API server and etcd, which work under load, keep
// the default; the others hold little, so that frequent collections cost them little.
func memoryEnv(name string) []string {
	if name == layout.APIServer || name == layout.Etcd || os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=50"}
}
