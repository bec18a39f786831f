package component

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// etcdQuota is the largest size etcd offers without a warning; benchmarks fill it.
const etcdQuota = 8 << 30

// runEtcd serves etcd on a Unix socket, so that no port is taken and the directory's
// permissions are the access control. Nothing is fsynced: the data survives a killed
// process, not a power cut, which is what a throw-away cluster needs to be fast.
func runEtcd() error {
	client := url.URL{Scheme: "unix", Host: layout.EtcdSock}
	peer := url.URL{Scheme: "unix", Host: layout.EtcdPeer}
	// A killed process leaves its sockets behind.
	for _, sock := range []string{layout.EtcdSock, layout.EtcdPeer} {
		if err := os.Remove(sock); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("etcd: old socket: %w", err)
		}
	}
	cfg := embed.NewConfig()
	cfg.Name = "devcluster"
	cfg.Dir = layout.EtcdData
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.LogLevel = "warn"
	cfg.UnsafeNoFsync = true
	cfg.QuotaBackendBytes = etcdQuota
	cfg.EnableGRPCGateway = false
	// The API server writes large lists and transactions; etcd's default of 1.5 MiB
	// stays, because real clusters have it.
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("etcd: start: %w", err)
	}
	defer e.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-e.Err():
		return fmt.Errorf("etcd: serve: %w", err)
	case <-stop:
		return nil
	}
}
