package apply

import (
	"errors"
	"regexp"
	"slices"
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

// withoutValues takes the values out of one of the server's texts, and what of it says nothing to people.
func withoutValues(message string) string {
	message = preamble().ReplaceAllString(message, "")
	if strings.HasPrefix(message, ".") || strings.HasPrefix(message, "errors:") {
		return typedFaults(message)
	}
	message = afterValueMark(message)
	message = parsed().ReplaceAllString(message, "$1 the value")
	message = ofType().ReplaceAllString(message, "$1")
	return unmarshalled().ReplaceAllString(message, "cannot unmarshal number into")
}

// preamble is how the server begins about an object that does not fit its type: our own sentence names the object.
func preamble() *regexp.Regexp {
	return regexp.MustCompile(`^(?:failed to create typed patch object \([^()]*\): |` +
		`failed to convert new object \([^()]*\) to proper version: (?:unable to convert unstructured object to [^:]*: )?|` +
		`[A-Za-z]+ in version "[^"]*" cannot be handled as an? [A-Za-z]+: )`)
}

// parsed, ofType and unmarshalled are further places where a value is quoted: by Go's parsers of times and numbers, by the
// checks of custom resources, and by the JSON decoder for numbers that are too large.
func parsed() *regexp.Regexp {
	return regexp.MustCompile(`(?s)((?:cannot parse|parsing(?: time)?)) "(?:[^"\\]|\\.)*"`)
}

func ofType() *regexp.Regexp {
	return regexp.MustCompile(`(?s)(must be of type [^:"]*): "(?:[^"\\]|\\.)*"`)
}

func unmarshalled() *regexp.Regexp { return regexp.MustCompile(`cannot unmarshal number \S+ into`) }

// typedFaults reads the faults of the comparison by types, one a line: ".data.pw: expected string, got &value{…}". A value
// may have several lines, so only what is a fault for certain is kept.
func typedFaults(message string) string {
	var out []string
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(line)
		fault, got, _ := strings.Cut(line, ", got ")
		if !strings.HasPrefix(line, ".") || !typedFault().MatchString(fault) {
			continue
		}
		if kindOfValue().MatchString(got) {
			fault += ", got " + got
		}
		out = append(out, strings.TrimPrefix(strings.ReplaceAll(fault, "field not declared in schema", "is no field of this kind"), "."))
	}
	if len(out) == 0 {
		return "does not fit the schema of its kind"
	}
	slices.Sort(out) // the server walks maps; the sentence must be the same every time
	return strings.Join(out, "; ")
}

func typedFault() *regexp.Regexp {
	return regexp.MustCompile(`: (?:expected [a-z() ]+|field not declared in schema|duplicate entries for key \[.*\]|(?:element \d+: )?associative list .*)$`)
}

func kindOfValue() *regexp.Regexp {
	return regexp.MustCompile(`^(?:string|bool|int64|float64)$`)
}

// afterValueMark takes out what follows "Invalid value: " and its like, up to the reason behind it.
func afterValueMark(message string) string {
	mark := regexp.MustCompile(`(?:Invalid|Unsupported|Duplicate|Forbidden) value: `)
	var out strings.Builder
	for {
		at := mark.FindStringIndex(message)
		if at == nil {
			out.WriteString(message)
			return out.String()
		}
		out.WriteString(strings.TrimSuffix(message[:at[1]], ": "))
		message = message[at[1]:]
		message = message[endOfValue(message):]
	}
}

// endOfValue is where the value ends that s begins with: a text in quotes, or JSON or Go syntax up to a colon outside of all
// brackets. What does not end is a value to its end.
func endOfValue(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if !quoted && depth == 0 && s[0] == '"' {
				return i + 1
			}
		case quoted:
		case strings.IndexByte("{[(", c) >= 0:
			depth++
		case strings.IndexByte("}])", c) >= 0:
			depth--
		case depth == 0 && strings.HasPrefix(s[i:], ": "):
			return i
		}
	}
	return len(s)
}

// retryable tells whether the same request may go through later: the server is away, busy, or a webhook is.
func retryable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	// The server answers 500 without a reason to an object that does not fit its type, and to trouble of its own; only the
	// words tell them apart.
	if preamble().MatchString(status.Status().Message) {
		return false
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsConflict(err)
}
