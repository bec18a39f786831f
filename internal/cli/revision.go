package cli

import (
	"strconv"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
)

// revisionHelp is how --revision is explained.
const revisionHelp = "branch, tag, commit or version instead of the application's own; of several sources POSITION:REVISION, the first is 1, or one for each; may be given several times"

// fixedRevisions are the revisions that stand in for those of the application's sources, in their order; empty where the
// source's own holds, nil when no text was given.
func fixedRevisions(app *v1alpha1.Application, texts []string) ([]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	n := max(len(app.Spec.Sources), 1)
	out := make([]string, n)
	positions := 0
	for _, text := range texts {
		position, revision, ok := positioned(text)
		if !ok {
			continue
		}
		positions++
		if position < 1 || position > n {
			return nil, ofKind(errUsage, "--revision %s: application %s has %d sources; the first is 1", text, app.Name, n)
		}
		if out[position-1] != "" {
			return nil, ofKind(errUsage, "--revision %s: source %d is given twice", text, position)
		}
		out[position-1] = revision
	}
	switch {
	case positions == len(texts):
		return out, nil
	case positions > 0:
		return nil, ofKind(errUsage, "--revision: with and without positions exclude each other")
	case len(texts) != n && n == 1:
		return nil, ofKind(errUsage, "--revision: %d are given, and application %s has one source", len(texts), app.Name)
	case len(texts) != n:
		return nil, ofKind(errUsage, "--revision: %d given for the %d sources of application %s; name them as POSITION:REVISION, or give one for each", len(texts), n, app.Name)
	}
	return texts, nil
}

// positioned reads POSITION:REVISION. Revisions hold no colon but those of digests, which do not begin with a number.
func positioned(text string) (position int, revision string, ok bool) {
	before, after, found := strings.Cut(text, ":")
	position, err := strconv.Atoi(before)
	return position, after, found && err == nil && after != ""
}
