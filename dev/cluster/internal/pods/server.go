package pods

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// Server answers what an API server asks kubelets: logs, exec and attach.
type Server struct {
	client kubernetes.Interface
	mux    *http.ServeMux
}

// NewServer makes a Server for the pods of all nodes; it reads them with client.
func NewServer(client kubernetes.Interface) *Server {
	s := &Server{client: client, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	s.mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.exec)
	s.mux.HandleFunc("/attach/{namespace}/{pod}/{container}", s.attach)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("%s: nodes of the local cluster answer logs, exec and attach only", r.URL.Path), http.StatusNotFound)
	})
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// find returns the pod and the container of a request, or writes the error.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (*corev1.Pod, *corev1.Container, *corev1.ContainerStatus) {
	namespace, name, cname := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, err := s.client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		http.Error(w, fmt.Sprintf("pod %q not found", name), http.StatusNotFound)
		return nil, nil, nil
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil, nil, nil
	}
	c := specOf(pod, cname)
	st, ok := states(pod)[cname]
	if c.Name == "" || !ok {
		http.Error(w, fmt.Sprintf("container %q in pod %q is not available", cname, name), http.StatusBadRequest)
		return nil, nil, nil
	}
	return pod, c, &st
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	pod, c, st := s.find(w, r)
	if pod == nil {
		return
	}
	q, err := parseLogQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	state, restarts := st.State, st.RestartCount
	if q.previous || state.Waiting != nil && st.LastTerminationState.Terminated != nil {
		state, restarts = st.LastTerminationState, max(st.RestartCount-1, 0)
	}
	if state.Running == nil && state.Terminated == nil {
		http.Error(w, noLogs(pod, c, st, q.previous), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	out := newLogWriter(w, q)
	out.write(tail(Lines(c, state, restarts, time.Now()), q))
	if q.follow && state.Running != nil {
		s.follow(r.Context(), out, pod, c, state)
	}
}

func noLogs(pod *corev1.Pod, c *corev1.Container, st *corev1.ContainerStatus, previous bool) string {
	if previous {
		return fmt.Sprintf("previous terminated container %q in pod %q not found", c.Name, pod.Name)
	}
	reason := "no status"
	if st.State.Waiting != nil {
		reason = st.State.Waiting.Reason
	}
	if reason == string(ErrImagePull) || reason == string(ImagePullBackOff) {
		reason = "trying and failing to pull image"
	}
	return fmt.Sprintf("container %q in pod %q is waiting to start: %s", c.Name, pod.Name, reason)
}

// follow writes new lines until the container ends, the pod goes or the client hangs up.
func (s *Server) follow(ctx context.Context, out *logWriter, pod *corev1.Pod, c *corev1.Container, state corev1.ContainerState) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	from := time.Now()
	for out.ok() {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			live, err := s.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil || live.UID != pod.UID {
				return
			}
			st := states(live)[c.Name]
			if st.State.Running != nil && st.State.Running.StartedAt == state.Running.StartedAt {
				out.write(after(Lines(c, st.State, st.RestartCount, now), from))
				from = now
				continue
			}
			ended := st.State
			if ended.Terminated == nil {
				ended = st.LastTerminationState
			}
			out.write(after(Lines(c, ended, st.RestartCount, now), from))
			return
		}
	}
}

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	pod, c, st := s.find(w, r)
	if pod == nil {
		return
	}
	if st.State.Running == nil {
		http.Error(w, fmt.Sprintf("container not found (%q)", c.Name), http.StatusInternalServerError)
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, answers{}, pod.Name, string(pod.UID), c.Name, r.URL.Query()["command"], opts,
		streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	pod, c, _ := s.find(w, r)
	if pod == nil {
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, answers{}, pod.Name, string(pod.UID), c.Name, opts,
		streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

// answers speaks for containers in which no process runs: it says so and repeats the
// command. Nothing is ever executed.
type answers struct{}

func (answers) ExecInContainer(_ context.Context, _, _, container string, cmd []string, _ io.Reader, out, _ io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return say(out, fmt.Sprintf("simulated container %s: nothing was executed\ncommand: %s\n", container, strings.Join(cmd, " ")))
}

func (answers) AttachContainer(_ context.Context, _, _, container string, _ io.Reader, out, _ io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize) error {
	return say(out, fmt.Sprintf("simulated container %s: there is no process to attach to\n", container))
}

func say(out io.WriteCloser, text string) error {
	if out == nil {
		return nil
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("stream: write: %w", err)
	}
	return nil
}
