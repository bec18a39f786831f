package client

import "errors"

// The kinds of errors. Messages name the object and the reason; errors.Is tells the kind.
var (
	// ErrNotFound says that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrInvalid says that what was asked makes no sense, whatever the state.
	ErrInvalid = errors.New("not valid")
	// ErrInProgress says that another operation is asked for or running.
	ErrInProgress = errors.New("another operation is in progress")
	// ErrNothingRuns says that there is no operation to end.
	ErrNothingRuns = errors.New("no operation is running")
	// ErrRefused says that what was asked would not hold, as things stand.
	ErrRefused = errors.New("refused")
	// ErrForbidden says that the caller may not.
	ErrForbidden = errors.New("not permitted")
	// ErrUnauthenticated says that the caller is not known.
	ErrUnauthenticated = errors.New("credentials are not accepted")
	// ErrUnreachable says that the other side did not answer.
	ErrUnreachable = errors.New("not reachable")
	// ErrNotInstalled says that the cluster does not know the kind Application.
	ErrNotInstalled = errors.New("the cluster has no Application kind: run lockstep install")

	// ErrStop ends a Watch from within.
	ErrStop = errors.New("stop watching")
)
