package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
)

// Event is one event of a kubelet about a pod.
type Event struct {
	Type, Reason, Message string
	// Container is the container it is about, empty for the whole pod.
	Container string
}

// Events lists what a kubelet says when a pod goes from old to new. It is derived
// from the statuses alone, so it also speaks about statuses that somebody else wrote.
func Events(old, now *corev1.Pod) []Event {
	var list []Event
	before := states(old)
	for _, st := range append(append([]corev1.ContainerStatus{}, now.Status.InitContainerStatuses...), now.Status.ContainerStatuses...) {
		prev, known := before[st.Name]
		list = append(list, containerEvents(now, prev, known, st)...)
	}
	if old.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		for _, st := range now.Status.ContainerStatuses {
			if st.State.Running != nil {
				list = append(list, Event{corev1.EventTypeNormal, "Killing", "Stopping container " + st.Name, st.Name})
			}
		}
	}
	return list
}

func states(pod *corev1.Pod) map[string]corev1.ContainerStatus {
	m := map[string]corev1.ContainerStatus{}
	for _, st := range pod.Status.InitContainerStatuses {
		m[st.Name] = st
	}
	for _, st := range pod.Status.ContainerStatuses {
		m[st.Name] = st
	}
	return m
}

func containerEvents(pod *corev1.Pod, prev corev1.ContainerStatus, known bool, st corev1.ContainerStatus) []Event {
	var list []Event
	add := func(kind, reason, message string) {
		list = append(list, Event{kind, reason, message, st.Name})
	}
	if known && st.ContainerID != prev.ContainerID && (st.State.Running != nil || st.State.Terminated != nil) {
		if prev.RestartCount == 0 && st.RestartCount == 0 {
			add(corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", st.Image))
			add(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q", st.Image))
		} else {
			add(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", st.Image))
		}
		add(corev1.EventTypeNormal, "Created", "Container created")
		add(corev1.EventTypeNormal, "Started", "Container started")
	}
	if st.State.Running != nil && !st.Ready && known && prev.State.Running == nil && ModeOf(pod, specOf(pod, st.Name)) == NeverReady {
		add(corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
	}
	if w := st.State.Waiting; w != nil && (prev.State.Waiting == nil || prev.State.Waiting.Reason != w.Reason) {
		list = append(list, waitingEvents(w, st)...)
	}
	return list
}

func waitingEvents(w *corev1.ContainerStateWaiting, st corev1.ContainerStatus) []Event {
	warn := func(reason, message string) Event { return Event{corev1.EventTypeWarning, reason, message, st.Name} }
	switch Mode(w.Reason) {
	case ErrImagePull:
		return []Event{
			{corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", st.Image), st.Name},
			warn("Failed", fmt.Sprintf("Failed to pull image %q: %s", st.Image, w.Message)),
			warn("Failed", "Error: ErrImagePull"),
		}
	case ImagePullBackOff:
		return []Event{
			{corev1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", st.Image), st.Name},
			warn("Failed", "Error: ImagePullBackOff"),
		}
	case CrashLoopBackOff:
		return []Event{warn("BackOff", w.Message)}
	case InvalidImageName:
		return []Event{warn("InspectFailed", w.Message), warn("Failed", "Error: InvalidImageName")}
	case CreateContainerConfigError:
		return []Event{warn("Failed", "Error: "+w.Message)}
	}
	return nil
}

func specOf(pod *corev1.Pod, name string) *corev1.Container {
	if c := container(pod.Spec.Containers, name); c != nil {
		return c
	}
	if c := container(pod.Spec.InitContainers, name); c != nil {
		return c
	}
	return &corev1.Container{}
}

// SendEvents watches all pods and writes the events of their kubelets until ctx ends.
func SendEvents(ctx context.Context, client kubernetes.Interface) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorders := map[string]record.EventRecorder{}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		// One goroutine calls the handler, so the map needs no lock.
		UpdateFunc: func(o, n any) {
			old, now := o.(*corev1.Pod), n.(*corev1.Pod)
			for _, e := range Events(old, now) {
				recorder, ok := recorders[now.Spec.NodeName]
				if !ok {
					recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: now.Spec.NodeName})
					recorders[now.Spec.NodeName] = recorder
				}
				send(recorder, now, e)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("events: watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

func send(recorder record.EventRecorder, pod *corev1.Pod, e Event) {
	ref, err := reference.GetReference(scheme.Scheme, pod)
	if err != nil {
		// Pods are in the scheme; without a reference there is nothing to say it about.
		return
	}
	if e.Container != "" {
		ref.FieldPath = fmt.Sprintf("spec.containers{%s}", e.Container)
	}
	recorder.Event(ref, e.Type, e.Reason, e.Message)
}

// slim drops what nobody here reads: the cache of all pods is the process's memory.
func slim(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec.Volumes, pod.Spec.Tolerations, pod.Spec.Affinity = nil, nil, nil
	}
	return obj, nil
}
