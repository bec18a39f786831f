package compare

import "strings"

// OptionsAnnotation steers the comparison, on an object or an Application: options separated by commas. ServerSideDiff=true,
// ServerSideDiff=false and IncludeMutationWebhook=true are accepted and change nothing: the comparison always asks the API
// server where it has to ask, and its answer holds what admission webhooks do.
const OptionsAnnotation = "argocd.argoproj.io/compare-options"

// ignoreExtraneous leaves an object that the source does not declare out of the application's sync status.
const ignoreExtraneous = "IgnoreExtraneous"

// IgnoresExtraneous tells that an object with these annotations does not make its application OutOfSync when the source
// does not declare it. Its health counts all the same, and a sync that prunes takes it away.
func IgnoresExtraneous(annotations map[string]string) bool {
	for option := range strings.SplitSeq(annotations[OptionsAnnotation], ",") {
		if strings.TrimSpace(option) == ignoreExtraneous {
			return true
		}
	}
	return false
}
