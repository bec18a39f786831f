package apply

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reason puts an API-server error into a sentence without the rejected values: what the server quotes may be a password
// (rule 6 of DESIGN.md §2.5). Field paths and the kind of the fault stay.
func reason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "the API server does not answer: " + err.Error()
	}
	s := status.Status()
	switch {
	case s.Reason == metav1.StatusReasonInvalid && s.Details != nil && len(s.Details.Causes) > 0:
		return causes(s.Details.Causes)
	case s.Reason == metav1.StatusReasonNotFound && s.Details != nil && s.Details.Kind == "namespaces":
		return "namespace " + s.Details.Name + " does not exist; create it or set the sync option CreateNamespace=true"
	case s.Code == 413 || s.Reason == metav1.StatusReasonRequestEntityTooLarge || strings.Contains(s.Message, "etcdserver: request is too large"):
		return "is too large for the API server"
	}
	return withoutValues(s.Message)
}

func causes(list []metav1.StatusCause) string {
	out := make([]string, 0, len(list))
	for _, c := range list {
		text := withoutValues(c.Message)
		if c.Field != "" && c.Field != "<nil>" {
			text = c.Field + ": " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// Values appear in the server's texts as `Invalid value: <value>: reason` or in quotes behind "value".
func withoutValues(message string) string {
	message = quotedValue().ReplaceAllString(message, "$1 value: …: ")
	return plainValue().ReplaceAllString(message, "$1 value: …: ")
}

func quotedValue() *regexp.Regexp {
	return regexp.MustCompile(`(?s)(Invalid|Unsupported|Duplicate|Forbidden) value: "(?:[^"\\]|\\.)*"(?:: |$)`)
}

func plainValue() *regexp.Regexp {
	return regexp.MustCompile(`(Invalid|Unsupported|Duplicate) value: (?:\{[^{}]*\}|\[[^\[\]]*\]|[^\s:…"]+)(?:: |$)`)
}

// retryable tells whether the same request may go through later: the server is away, busy, or a webhook is.
func retryable(err error) bool {
	if apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status)
}
