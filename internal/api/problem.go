package api

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The codes of gRPC that Argo CD's clients read in an error.
const (
	codeInvalid         = 3
	codeNotFound        = 5
	codeExists          = 6
	codeDenied          = 7
	codePrecondition    = 9
	codeAborted         = 10
	codeUnimplemented   = 12
	codeInternal        = 13
	codeUnavailable     = 14
	codeUnauthenticated = 16
)

// problem is an error that is told to who asked: its message is for them.
type problem struct {
	status, code int
	message      string
}

func (p *problem) Error() string { return p.message }

// failure is the body of an error, in Argo CD's shape.
type failure struct {
	Error   string `json:"error"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// denied is the one answer to who may not, whether or not there is what they asked for: it reveals no names.
func denied() *problem { return &problem{http.StatusForbidden, codeDenied, "permission denied"} }

func invalid(format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, codeInvalid, fmt.Sprintf(format, args...)}
}

func absent(format string, args ...any) *problem {
	return &problem{http.StatusNotFound, codeNotFound, fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) *problem {
	return &problem{http.StatusConflict, codeAborted, fmt.Sprintf(format, args...)}
}

func precondition(format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, codePrecondition, fmt.Sprintf(format, args...)}
}

func unavailable(format string, args ...any) *problem {
	return &problem{http.StatusServiceUnavailable, codeUnavailable, fmt.Sprintf(format, args...)}
}

// told is what of an error is answered. What the cluster said about what was asked for is for who asked; any other error is
// ours, and nil.
func told(err error) *problem {
	var p *problem
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &p):
		return p
	case !errors.As(err, &status):
		return nil
	}
	message := status.Status().Message
	switch {
	case apierrors.IsNotFound(err):
		return absent("%s", message)
	case apierrors.IsAlreadyExists(err):
		return &problem{http.StatusConflict, codeExists, message}
	case apierrors.IsConflict(err):
		return conflict("%s", message)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return invalid("%s", message)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &problem{http.StatusBadGateway, codePrecondition, "the cluster does not let Lockstep do this"}
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err):
		return unavailable("the cluster does not answer now")
	}
	return nil
}
