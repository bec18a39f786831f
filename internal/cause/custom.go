package cause

import (
	"strings"

	"github.com/lockstep-cd/lockstep/internal/steady"
)

// custom explains custom resources whose controllers say what is wrong in conditions that are known.
func (t *tree) custom(n *node) (candidate, bool) {
	switch {
	case n.group == "cert-manager.io" || n.group == "acme.cert-manager.io":
		return t.certificate(n)
	case strings.HasSuffix(n.group, "services.k8s.aws"):
		return t.ack(n)
	case n.group == "bitnami.com" && n.kind == "SealedSecret":
		if synced := n.fields.Condition("Synced"); synced.Text("status") == "False" {
			return n.cause(NotDecrypted, fails, "it can not be decrypted: "+messageOf(synced), "seal it again with the certificate of this cluster's controller, for this name and namespace"), true
		}
	case n.group == "external-secrets.io":
		if ready := n.fields.Condition("Ready"); ready.Text("status") == "False" {
			return n.cause(SecretNotSynced, fails, "it can not be read from its store: "+messageOf(ready), "check the store, its credentials and the name of the secret"), true
		}
	}
	return t.crossplane(n)
}

// certificate explains what stands between a certificate and its issuing: the deeper object says it better.
func (t *tree) certificate(n *node) (candidate, bool) {
	const next = "correct what the issuer complains of; cert-manager tries again"
	ready := n.fields.Condition("Ready")
	switch n.kind {
	case "Challenge", "Order":
		reason := steady.Message(n.fields.Text("status", "reason"))
		switch state := n.fields.Text("status", "state"); {
		case state == "valid" || state == "ready":
			return candidate{}, false
		case state == "invalid" || state == "errored" || state == "expired":
			return n.cause(CertificateNotIssued, fails, strings.TrimRight("the certificate is not issued: the "+strings.ToLower(n.kind)+" is "+state+": "+reason, ": "), next), true
		case reason != "":
			return n.cause(CertificateNotIssued, blocks, "the certificate is not issued yet: "+reason, next), true
		}
	case "Issuer", "ClusterIssuer":
		if ready.Text("status") == "False" {
			return n.cause(IssuerNotReady, fails, "it can not issue certificates: "+messageOf(ready), "correct the issuer's configuration and credentials"), true
		}
	default:
		for _, kind := range []string{"InvalidRequest", "Denied"} {
			if n.fields.Holds(kind) {
				return n.cause(CertificateNotIssued, fails, "the certificate is not issued: "+messageOf(n.fields.Condition(kind)), next), true
			}
		}
		if failed := n.fields.Condition("Issuing"); failed.Text("status") == "False" && failed.Text("reason") == "Failed" {
			return n.cause(CertificateNotIssued, blocks, "the certificate is not issued: "+messageOf(failed), next), true
		}
		if ready.Text("status") == "False" {
			return n.cause(CertificateNotIssued, waits, "the certificate is not issued yet: "+messageOf(ready), next), true
		}
	}
	return candidate{}, false
}

// ack explains a resource of an AWS controller.
func (t *tree) ack(n *node) (candidate, bool) {
	if terminal := n.fields.Condition("ACK.Terminal"); terminal.Text("status") == "True" {
		return n.cause(CloudTerminal, fails, "AWS refuses it for good: "+messageOf(terminal), "change its specification; the controller does not try again before"), true
	}
	if references := n.fields.Condition("ACK.ReferencesResolved"); references.Text("status") == "False" || references.Text("status") == "Unknown" {
		return n.cause(CloudRecoverable, waits, strings.TrimRight("it waits for an object that it refers to: "+messageOf(references), ": "), "look whether that object is there and ready"), true
	}
	if recoverable := n.fields.Condition("ACK.Recoverable"); recoverable.Text("status") == "True" {
		return n.cause(CloudRecoverable, blocks, "AWS refuses it for now: "+messageOf(recoverable), "correct what AWS complains of, often a permission of the controller; it tries again"), true
	}
	return candidate{}, false
}

// crossplane explains managed and composite resources: their conditions Synced and LastAsyncOperation have these reasons
// nowhere else.
func (t *tree) crossplane(n *node) (candidate, bool) {
	const next = "correct its specification or the credentials of its provider; Crossplane tries again"
	if synced := n.fields.Condition("Synced"); synced.Text("status") == "False" && synced.Text("reason") == "ReconcileError" {
		return n.cause(CrossplaneSync, fails, "its provider can not bring it about: "+messageOf(synced), next), true
	}
	if last := n.fields.Condition("LastAsyncOperation"); last.Text("status") == "False" {
		return n.cause(CrossplaneSync, fails, "its provider's last operation failed: "+messageOf(last), next), true
	}
	return candidate{}, false
}
