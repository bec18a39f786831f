package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/layout"
)

// exposed is a local process as a Service.
type exposed struct {
	namespace, name   string
	port, servicePort int32
}

func (a *app) expose() *cobra.Command {
	var e exposed
	cmd := &cobra.Command{
		Use:   "expose NAME PORT",
		Short: "Make a Service that leads to a process on 127.0.0.1:PORT",
		Long: `Make a Service that leads to a process on 127.0.0.1:PORT, for webhooks and aggregated
APIs: the API server reaches the process at NAME.NAMESPACE.svc. The process serves TLS
for that name, as in any cluster.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			port, err := strconv.ParseUint(args[1], 10, 16)
			if err != nil || port == 0 {
				return fmt.Errorf("port %q: want a number from 1 to 65535", args[1])
			}
			e.name, e.port = args[0], int32(port)
			if err := a.exposeIn(cmd.Context(), e); err != nil {
				return err
			}
			return a.printf("service %s/%s port %d leads to 127.0.0.1:%d\n", e.namespace, e.name, e.servicePort, e.port)
		},
	}
	cmd.Flags().StringVarP(&e.namespace, "namespace", "n", "default", "namespace of the Service; it has to exist")
	cmd.Flags().Int32Var(&e.servicePort, "service-port", 443, "port of the Service")
	return cmd
}

func (a *app) exposeIn(ctx context.Context, e exposed) error {
	path, err := a.kubeconfigPath()
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("cluster %s: kubeconfig: %w", a.name, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cluster %s: client: %w", a.name, err)
	}
	service, slice := e.objects()
	opts := metav1.PatchOptions{FieldManager: "devcluster", Force: new(true)}
	data, err := yaml.Marshal(service)
	if err != nil {
		return fmt.Errorf("service %s/%s: encode: %w", e.namespace, e.name, err)
	}
	if _, err := client.CoreV1().Services(e.namespace).Patch(ctx, e.name, types.ApplyPatchType, data, opts); err != nil {
		return fmt.Errorf("service %s/%s: apply: %w", e.namespace, e.name, err)
	}
	if data, err = yaml.Marshal(slice); err != nil {
		return fmt.Errorf("endpoint slice %s/%s: encode: %w", e.namespace, e.name, err)
	}
	if _, err := client.DiscoveryV1().EndpointSlices(e.namespace).Patch(ctx, slice.Name, types.ApplyPatchType, data, opts); err != nil {
		return fmt.Errorf("endpoint slice %s/%s: apply: %w", e.namespace, slice.Name, err)
	}
	return nil
}

// objects are the Service without a selector and its one endpoint: the address that
// the egress proxy maps to this machine's loopback interface.
func (e exposed) objects() (*corev1.Service, *discoveryv1.EndpointSlice) {
	const portName = "main"
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{
			Name: portName, Port: e.servicePort, TargetPort: intstr.FromInt32(e.port), Protocol: corev1.ProtocolTCP,
		}}},
	}
	slice := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name + "-local", Labels: map[string]string{
			discoveryv1.LabelServiceName: e.name,
			discoveryv1.LabelManagedBy:   "devcluster",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{layout.HostIP},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: new(portName), Port: new(e.port), Protocol: new(corev1.ProtocolTCP)}},
	}
	return service, slice
}
