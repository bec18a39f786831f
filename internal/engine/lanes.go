package engine

import (
	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/queue"
)

// lane says whose work an application is, for the turns that clusters and projects take, and how urgent it is. While
// somebody waits for a sync, everything that goes on with it is for a person, whatever woke the application.
func (e *Engine) lane(key string, p queue.Priority) (queue.Lane, queue.Priority) {
	app, _ := e.applications.get(key)
	if app == nil {
		return queue.Lane{}, p
	}
	if byHand(app) {
		p = queue.People
	}
	return queue.Lane{Cluster: clusterOf(app.Spec.Destination), Project: projectOf(app)}, p
}

// clusterOf is the cluster of a destination, by its server where that is known.
func clusterOf(d v1alpha1.ApplicationDestination) string {
	switch {
	case d.Name == InClusterName, d.Server == "" && d.Name == "":
		return InClusterServer
	case d.Server == "":
		return d.Name
	}
	return trimSlash(d.Server)
}

// byHand tells whether a sync is asked for or under way that somebody has asked for.
func byHand(app *v1alpha1.Application) bool {
	if app.Operation != nil && !app.Operation.InitiatedBy.Automated {
		return true
	}
	last := app.Status.OperationState
	return last != nil && !last.Phase.Completed() && !last.Operation.InitiatedBy.Automated
}
