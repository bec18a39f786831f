package cause

import (
	"regexp"
	"strings"

	"github.com/lockstep-cd/lockstep/internal/steady"
)

// refusal is a way in which the API server refuses an object, with what it says then. $1 and $2 of what and next are the
// parts of the text.
type refusal struct {
	reason Reason
	sign   *regexp.Regexp
	what   string
	next   string
}

// refusals in the order in which they are tried, the particular before the general. Read only.
var refusals = []refusal{
	{QuotaExceeded, regexp.MustCompile(`exceeded quota: ([^,]+), requested: ([^=]+)=`), "ResourceQuota $1 has not enough $2 left", "raise the quota, ask for less, or remove what is not needed"},
	{QuotaExceeded, regexp.MustCompile(`failed quota: ([^:]+): must specify (.+)`), "ResourceQuota $1 demands that $2 are set", "set requests and limits, or a LimitRange with defaults"},
	{LimitRange, regexp.MustCompile(`((?:maximum|minimum) [\w./-]+(?: usage)? per \w+ is [^,]+), but (?:limit|request) is ([^,\s\]]+)`), "a LimitRange forbids it: $1, and $2 is asked for", "change requests and limits, or the LimitRange"},
	{LimitRange, regexp.MustCompile(`([\w./-]+ max limit to request ratio per \w+ is [^,]+)`), "a LimitRange forbids it: $1", "change requests and limits, or the LimitRange"},
	{ServiceAccountMissing, regexp.MustCompile(`serviceaccount "([^"]+)" not found`), "ServiceAccount $1 is not there", "create the service account, or correct its name"},
	{PriorityClassMissing, regexp.MustCompile(`no PriorityClass with name (\S+) was found`), "PriorityClass $1 is not there", "create the priority class, or correct its name"},
	{PodSecurity, regexp.MustCompile(`violates PodSecurity "([^"]+)": (.+)`), "the namespace's pod security level $1 forbids it: $2", "change the pod's security context, or the namespace's level"},
	{AdmissionRefused, regexp.MustCompile(`admission webhook "([^"]+)" denied the request:? ?(.*)`), "admission webhook $1 refuses it: $2", "meet the rule that the webhook names"},
	{AdmissionRefused, regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.*)`), "ValidatingAdmissionPolicy $1 refuses it: $2", "meet the rule that the policy names"},
	{WebhookDown, regexp.MustCompile(`failed calling webhook "([^"]+)"`), "admission webhook $1 does not answer", "repair the service behind the webhook, or remove its configuration"},
	{NamespaceTerminating, regexp.MustCompile(`namespace (\S+) because it is being terminated`), "namespace $1 is being deleted", "wait until it is gone; when it does not go, look for what holds it"},
	{NamespaceMissing, regexp.MustCompile(`namespaces "([^"]+)" not found`), "namespace $1 is not there", "create the namespace, or set the sync option CreateNamespace=true"},
	{KindMissing, regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`), "the cluster does not know the kind $1 of $2", "install its CustomResourceDefinition first, or correct the apiVersion"},
	{KindMissing, regexp.MustCompile(`(the server could not find the requested resource)`), "the cluster does not know its kind", "install its CustomResourceDefinition first, or correct the apiVersion"},
	{OwnershipConflict, regexp.MustCompile(`conflict(?:s)? with "([^"]+)"(?: using [^:]+)?:?\s*-?\s*(\S*)`), "$1 owns a field that it sets: $2", "take the field out, or let Lockstep take it over (sync option Force)"},
	{FieldImmutable, regexp.MustCompile(`(?:([\w.\[\]]+): Invalid value: .*)?field is immutable`), "a field of it can not be changed: $1", "put the old value back, or replace the object (sync option Replace=true)"},
	{Invalid, regexp.MustCompile(`is invalid: (.+)`), "the API server finds it invalid: $1", "correct the manifest"},
	{Forbidden, regexp.MustCompile(`User "([^"]+)" cannot (\w+ resource "[^"]+")`), "$1 may not $2", "give the account the permission"},
	{ClusterUnreachable, regexp.MustCompile(`(?i)(connection refused|no such host|i/o timeout|no route to host|TLS handshake timeout)`), "the cluster can not be reached: $1", "check the cluster's address, network and credentials"},
	{Forbidden, regexp.MustCompile(`is forbidden: (.+)`), "it is forbidden: $1", "meet the rule that is named"},
}

// OfRefusal explains why the API server did not take an object, from what it said; false when the text says nothing that
// is known. The object is named as Kind namespace/name.
func OfRefusal(object, text string) (Cause, bool) {
	for _, r := range refusals {
		found := r.sign.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		return Cause{
			Reason: r.reason, Sentence: object + ": " + fill(r.what, found), Next: r.next,
			Chain: []Link{{Object: object, Says: steady.Message(text)}},
		}, true
	}
	return Cause{}, false
}

// fill puts the parts of a text into a sentence, without what changes while the cause does not.
func fill(what string, parts []string) string {
	for i, part := range parts[1:] {
		what = strings.ReplaceAll(what, "$"+string(rune('1'+i)), steady.Message(strings.TrimSpace(part)))
	}
	return strings.TrimRight(what, ": ")
}

// refused is the cause of a node whose making was refused.
func (n *node) refused(text, otherwise string) candidate {
	if c, ok := OfRefusal(n.subject(), text); ok {
		c.Chain = nil
		return candidate{Cause: c, weight: fails}
	}
	return n.cause(Forbidden, blocks, otherwise+": "+steady.Message(text), "read the object's events")
}

// refusedEvent explains a node by an event of something that was refused.
func (t *tree) refusedEvent(n *node) (candidate, bool) {
	if text := n.event("FailedCreate", "CreateFailed"); text != "" {
		return n.refused(text, "what it makes can not be created"), true
	}
	return candidate{}, false
}
