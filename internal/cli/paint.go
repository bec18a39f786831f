package cli

import "github.com/lockstep-cd/lockstep/api/v1alpha1"

// paint colours words for a terminal; false leaves them as they are. A colour repeats what the word says.
type paint bool

// tone is the state a colour stands for.
type tone string

const (
	plain  tone = ""
	good   tone = "32"
	runs   tone = "34"
	warn   tone = "33"
	bad    tone = "31"
	held   tone = "35"
	dim    tone = "90"
	strong      = tone("1")
)

func (p paint) as(t tone, text string) string {
	if !bool(p) || t == plain || text == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

func syncTone(s v1alpha1.SyncStatusCode) tone {
	switch s {
	case v1alpha1.SyncSynced:
		return good
	case v1alpha1.SyncOutOfSync:
		return warn
	}
	return dim
}

func healthTone(h v1alpha1.HealthStatusCode) tone {
	switch h {
	case v1alpha1.HealthHealthy:
		return good
	case v1alpha1.HealthProgressing:
		return runs
	case v1alpha1.HealthSuspended:
		return held
	case v1alpha1.HealthMissing:
		return warn
	case v1alpha1.HealthDegraded:
		return bad
	}
	return dim
}

func phaseTone(p v1alpha1.OperationPhase) tone {
	switch p {
	case v1alpha1.OperationSucceeded:
		return good
	case v1alpha1.OperationFailed, v1alpha1.OperationError:
		return bad
	case v1alpha1.OperationRunning, v1alpha1.OperationTerminating:
		return runs
	}
	return plain
}

func resultTone(r v1alpha1.ResultCode) tone {
	switch r {
	case v1alpha1.ResultSynced, v1alpha1.ResultPruned:
		return good
	case v1alpha1.ResultSyncFailed:
		return bad
	case v1alpha1.ResultPruneSkipped:
		return held
	}
	return plain
}
