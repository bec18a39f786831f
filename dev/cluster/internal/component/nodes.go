package component

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/addons"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
	"github.com/lockstep-cd/lockstep/dev/cluster/internal/pods"
)

const (
	nodesKubeconfig = "conf/nodes.kubeconfig"
	// leaseSeconds is a kubelet's default.
	leaseSeconds = 40
	// playParallelism is how many stages KWOK plays at once; patches wait on the API
	// server, not on the processor.
	playParallelism = 8
)

// runNodes is everything that real nodes and a cloud would do: KWOK with our stages,
// the kubelets' server, the events of kubelets, and the add-ons.
func runNodes(p Params) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("component", layout.Nodes)
	config, err := clientcmd.BuildConfigFromFlags("", nodesKubeconfig)
	if err != nil {
		return fmt.Errorf("kwok: kubeconfig: %w", err)
	}
	// -1 switches the client's own rate limit off.
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "devcluster-nodes"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kwok: client: %w", err)
	}
	if err := createNodes(ctx, client, p.Nodes); err != nil {
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- serveKubelet(ctx, client) }()
	go func() { failed <- pods.SendEvents(ctx, client) }()
	go func() { failed <- addons.Run(ctx, client, log) }()
	if err := startKwok(ctx, client); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("kwok: %w", err)
	}
}

// startKwok starts KWOK's controllers for all nodes; they end with ctx.
func startKwok(ctx context.Context, client kubernetes.Interface) error {
	conf, err := kwokClients()
	if err != nil {
		return err
	}
	if conf.ID, err = controllers.Identity(); err != nil {
		return fmt.Errorf("kwok: identity: %w", err)
	}
	conf.Clock = clock.RealClock{}
	conf.TypedClient = client
	conf.ManageAllNodes = true
	conf.CIDR, conf.NodeIP = layout.PodCIDR, layout.NodeIP(1)
	conf.LocalStages, conf.FuncMap = stages(), templateFuncs(pods.NodeStatus)
	conf.PodPlayStageParallelism, conf.NodePlayStageParallelism = playParallelism, 1
	conf.NodeLeaseDurationSeconds, conf.NodeLeaseParallelism = leaseSeconds, 1
	conf.PodsOnNodeSyncParallelism, conf.EnablePodsOnNodeSyncListPager = 1, true
	controller, err := controllers.NewController(conf)
	if err != nil {
		return fmt.Errorf("kwok: controller: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("kwok: start: %w", err)
	}
	return nil
}

// kwokClients fills in the clients that KWOK makes for itself.
func kwokClients() (controllers.Config, error) {
	set, err := kwokclient.NewClientset("", nodesKubeconfig)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("kwok: client: %w", err)
	}
	dynamic, err := set.ToDynamicClient()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("kwok: client: %w", err)
	}
	mapper, err := set.ToRESTMapper()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("kwok: mapper: %w", err)
	}
	config, err := set.ToRESTConfig()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("kwok: client: %w", err)
	}
	raw, err := rest.RESTClientFor(config)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("kwok: client: %w", err)
	}
	return controllers.Config{
		DynamicClient:              dynamic,
		RESTClient:                 raw,
		RESTMapper:                 mapper,
		ImpersonatingDynamicClient: set.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:   set.ToImpersonatingTypedClient(),
	}, nil
}

// createNodes makes the nodes that are missing. A node that somebody deletes stays
// deleted until this process starts again.
func createNodes(ctx context.Context, client kubernetes.Interface, n int) error {
	for i := 1; i <= n; i++ {
		name := layout.NodeName(i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname:      name,
				corev1.LabelOSStable:      "linux",
				corev1.LabelArchStable:    "amd64",
				corev1.LabelTopologyZone:  fmt.Sprintf("zone-%c", 'a'+rune((i-1)%3)),
				"node.kubernetes.io/role": "worker",
			}},
			Status: corev1.NodeStatus{
				Addresses: []corev1.NodeAddress{
					{Type: corev1.NodeInternalIP, Address: layout.NodeIP(i)},
					{Type: corev1.NodeHostName, Address: name},
				},
				DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: layout.KubeletPort}},
			},
		}
		// The status of a new node counts: kubelets register with it.
		node.Status = pods.NodeStatus(node, time.Now())
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("node %s: create: %w", name, err)
		}
	}
	return nil
}

// serveKubelet serves the kubelet API of all nodes on one Unix socket. Only the API
// server may call it: it has to show its client certificate.
func serveKubelet(ctx context.Context, client kubernetes.Interface) error {
	ca, err := os.ReadFile("pki/ca.crt")
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	if err := os.Remove(layout.KubeletSock); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("kubelet: old socket: %w", err)
	}
	listener, err := net.Listen("unix", layout.KubeletSock)
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	server := &http.Server{
		Handler:           pods.NewServer(client),
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{
			ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs:  pool,
			MinVersion: tls.VersionTLS12,
		},
		// Streams (exec, attach) take over HTTP/1.1 connections.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	err = server.ServeTLS(listener, "pki/kubelet.crt", "pki/kubelet.key")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("kubelet: serve: %w", err)
}
