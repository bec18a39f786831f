// Package steady owns the rule that a sentence changes only when its cause does: it takes out of other people's messages
// what changes by itself. It imports internal/field and does no I/O.
package steady

import (
	"regexp"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/field"
)

// maxSentence is the number of characters of somebody else's message that are kept.
const maxSentence = 256

// The parts of messages that change while the cause does not, with what stands in their place. Read only.
var (
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| ?[+-]\d\d:?\d\d)?(?: [A-Z]{3,4})?(?: m=[+-][\d.]+)?`)
	spans   = regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:h|ms|m|s|µs|us|ns))+\b`)
	uuids   = regexp.MustCompile(`\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b`)
	ratios  = regexp.MustCompile(`(^|[\s("'\[])\d+\s?/\s?\d+($|[\s)"',.:;\]])`)
	portion = regexp.MustCompile(`\b\d+ (of|out of) \d+\b`)
	tries   = regexp.MustCompile(`(?i)\b(attempt|retry|try|retries)( number|:)? ?#?\d+\b`)
	amounts = regexp.MustCompile(`(?i)\b\d+ (more |unavailable |available |ready |old |new |updated |unready |pending |failed )*(times|attempts?|retries|seconds?|minutes?|hours?|replicas?|pods?|instances?|nodes?)\b`)
	request = regexp.MustCompile(`(?i)\b(request ?id|trace ?id)(:|=)? ?"?[\w-]+"?`)
	// Kubernetes makes names from these letters only: no vowels, and no digits that look like one.
	suffix = regexp.MustCompile(`(?:-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
)

// Message is somebody else's message without times, counters and generated names, on one line and of bounded length: it
// changes only when the cause does.
func Message(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	for _, part := range []*regexp.Regexp{moments, uuids, spans} {
		message = part.ReplaceAllString(message, "…")
	}
	message = request.ReplaceAllString(message, "$1 …")
	message = portion.ReplaceAllString(message, "some $1 all")
	message = ratios.ReplaceAllString(message, "$1…$2")
	message = tries.ReplaceAllString(message, "$1 …")
	message = amounts.ReplaceAllString(message, "some $1$2")
	message = suffix.ReplaceAllStringFunc(message, func(name string) string {
		// A word without vowels is not a generated name; one with a digit in it is.
		if !strings.ContainsAny(name, "2456789") {
			return name
		}
		return "-…"
	})
	if runes := []rune(message); len(runes) > maxSentence {
		message = strings.TrimSpace(string(runes[:maxSentence])) + "…"
	}
	return message
}

// Condition is a condition of a status in words: Ready is False: NotFound: no such bucket.
func Condition(condition field.Map) string {
	sentence := condition.Text("type") + " is " + condition.Text("status")
	if reason := condition.Text("reason"); reason != "" {
		sentence += ": " + reason
	}
	if message := Message(condition.Text("message")); message != "" {
		sentence += ": " + message
	}
	return sentence
}
