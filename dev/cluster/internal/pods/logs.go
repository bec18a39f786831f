package pods

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// heartbeat is the distance of the lines that a running container writes.
const heartbeat = 5 * time.Second

// Line is one line of a container's log.
type Line struct {
	Time time.Time
	Text string
}

// Lines is what a container has written up to now. No process runs, so the log is
// computed from the status: the same container always shows the same lines.
func Lines(c *corev1.Container, state corev1.ContainerState, restarts int32, now time.Time) []Line {
	var start, end time.Time
	last := ""
	switch {
	case state.Running != nil:
		start, end = state.Running.StartedAt.Time, now
	case state.Terminated != nil:
		t := state.Terminated
		start, end = t.StartedAt.Time, t.FinishedAt.Time
		last = fmt.Sprintf("exiting with code %d", t.ExitCode)
		if t.ExitCode != 0 {
			last = fmt.Sprintf("fatal: %s, exiting with code %d", t.Reason, t.ExitCode)
		}
	default:
		return nil
	}
	list := []Line{
		{start, fmt.Sprintf("simulated container %s (image %s, restart %d): no process runs", c.Name, c.Image, restarts)},
		{start, "started"},
	}
	for i := 1; start.Add(time.Duration(i) * heartbeat).Before(end); i++ {
		list = append(list, Line{start.Add(time.Duration(i) * heartbeat), fmt.Sprintf("still running, line %d", i)})
	}
	if last != "" {
		list = append(list, Line{end, last})
	}
	return list
}
