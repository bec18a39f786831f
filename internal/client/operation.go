package client

import (
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// markName is the entry of an operation's info that carries the mark.
const markName = "lockstep.dev/request"

// Mark tells an operation that was asked for from every other.
type Mark struct {
	// ID is unique; the operation carries it in its info.
	ID string
	// Before is when the operation started that was the last one when this one was asked for; zero without one.
	Before time.Time
}

// Stage is where an operation that was asked for stands.
type Stage uint8

// The stages.
const (
	// Waiting means that nobody has taken it up.
	Waiting Stage = iota + 1
	// Running means that it is being carried out, or waits for its next try.
	Running
	// Ended means that it has a result, in status.operationState.
	Ended
	// Replaced means that another operation took its place, so its result is not known.
	Replaced
)

// With returns op carrying the mark.
func (m Mark) With(op v1alpha1.Operation) v1alpha1.Operation {
	op.Info = append(append([]*v1alpha1.Info(nil), op.Info...), &v1alpha1.Info{Name: markName, Value: m.ID})
	return op
}

// Stage tells where the marked operation of app stands.
func (m Mark) Stage(app *v1alpha1.Application) Stage {
	asked := app.Operation != nil
	state := app.Status.OperationState
	switch {
	case state != nil && m.on(&state.Operation):
		if state.Phase.Completed() && (!asked || !m.on(app.Operation)) {
			return Ended
		}
		return Running
	case asked && m.on(app.Operation):
		return Waiting
	case state != nil && !state.StartedAt.Time.Equal(m.Before):
		return Replaced
	case asked:
		return Replaced
	}
	// Taken up, and the status is not written yet.
	return Waiting
}

func (m Mark) on(op *v1alpha1.Operation) bool {
	for _, info := range op.Info {
		if info != nil && info.Name == markName && info.Value == m.ID {
			return true
		}
	}
	return false
}

// Busy tells whether app has an operation that is asked for or running, and why no other can start.
func Busy(app *v1alpha1.Application) (string, bool) {
	if op := app.Operation; op != nil {
		return "an operation " + by(op) + " waits to be taken up", true
	}
	state := app.Status.OperationState
	if state == nil || state.Phase.Completed() {
		return "", false
	}
	return "a sync " + by(&state.Operation) + " runs since " + state.StartedAt.UTC().Format(time.RFC3339), true
}

func by(op *v1alpha1.Operation) string {
	switch {
	case op.InitiatedBy.Username != "":
		return "asked for by " + op.InitiatedBy.Username
	case op.InitiatedBy.Automated:
		return "of the automated policy"
	}
	return "of somebody unnamed"
}
