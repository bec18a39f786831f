package component

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-cd/lockstep/dev/cluster/internal/pods"
)

const unschedulableName = "DevclusterUnschedulable"

// unschedulable refuses every node to pods that ask for it, with the words that the
// resource-fit plugin uses for a full node.
type unschedulable struct{}

var _ fwk.FilterPlugin = unschedulable{}

func newUnschedulable(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return unschedulable{}, nil
}

func (unschedulable) Name() string { return unschedulableName }

func (unschedulable) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeInfo) *fwk.Status {
	if pods.Unschedulable(pod) {
		return fwk.NewStatus(fwk.Unschedulable, "Insufficient cpu")
	}
	return nil
}
