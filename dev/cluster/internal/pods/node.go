package pods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeletVersion is what the nodes report; it follows the API server's version.
const kubeletVersion = "v1.37.2"

// NodeStatus is the status of a healthy node: what it has of its own in addresses and
// capacity stays.
func NodeStatus(node *corev1.Node, now time.Time) corev1.NodeStatus {
	s := *node.Status.DeepCopy()
	s.Conditions = nil
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	} {
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		s.Conditions = append(s.Conditions, c)
	}
	if len(s.Capacity) == 0 {
		s.Capacity = corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("64"),
			corev1.ResourceMemory:           resource.MustParse("256Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
			corev1.ResourcePods:             resource.MustParse("5000"),
		}
	}
	if len(s.Allocatable) == 0 {
		s.Allocatable = s.Capacity.DeepCopy()
	}
	s.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: kubeletVersion, OperatingSystem: "linux", Architecture: "amd64",
		ContainerRuntimeVersion: "containerd://simulated", OSImage: "devcluster (KWOK)", KernelVersion: "simulated",
	}
	return s
}
