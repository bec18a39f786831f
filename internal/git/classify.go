package git

import (
	"errors"
	"strings"
)

// This file is the only place that reads what git, curl and ssh print: their exit code is 128 for almost everything. Its
// test runs real git against a real server for each kind.

// symptom is a piece of text, in lower case, and what it means.
type symptom struct {
	text       string
	kind       error
	what, hint string
}

func (s symptom) is(kind error) bool { return errors.Is(s.kind, kind) }

// symptomPrompt is what git means when it would ask a person. A session that did send something says so instead.
const symptomPrompt = "it needs credentials and none are configured, or there is no such repository"

// symptoms in order: the first that is found wins, so the special ones stand before the general ones.
var symptoms = []symptom{
	// ssh
	{"host key verification failed", ErrUntrusted, "the server's ssh host key is not a known one", "add it to the ssh known hosts, after checking it"},
	{"host identification has changed", ErrUntrusted, "the server's ssh host key has changed", "check it, then replace it in the ssh known hosts"},
	{"permission denied (", ErrAuth, "the server accepted no ssh key", "configure a private key that it knows"},
	{"no supported authentication methods", ErrAuth, "the server accepted no ssh key", "configure a private key that it knows"},
	{"error in libcrypto", ErrAuth, "the ssh private key can not be read", "configure an unencrypted key in PEM or OpenSSH format"},
	{"too many authentication failures", ErrAuth, "the server accepted no ssh key", "configure a private key that it knows"},
	// http
	{"terminal prompts disabled", ErrAuth, symptomPrompt, "configure credentials for it, or check the URL"},
	{"authentication failed", ErrAuth, "the server did not accept the credentials", "check user name, password or token"},
	{"requested url returned error: 401", ErrAuth, "the server did not accept the credentials", "check user name, password or token"},
	{"requested url returned error: 403", ErrAuth, "the server denies access (403)", "give the credentials the right to read it"},
	{"requested url returned error: 404", ErrNotFound, "there is no such repository, or the credentials may not see it", "check the URL and the credentials"},
	{"requested url returned error: 407", ErrUnreachable, "the proxy wants credentials", "put them into the proxy's URL"},
	{"requested url returned error: 429", ErrUnreachable, "the server asks for fewer requests (429)", ""},
	{"requested url returned error: 30", ErrUnreachable, "the server redirects to another address", "use the repository's present URL"},
	{"unable to update url base from redirection", ErrUnreachable, "the server redirects to another address", "use the repository's present URL"},
	{"certificate problem", ErrUntrusted, "the server's TLS certificate is not trusted", "configure its certificate authority"},
	{"certificate verification failed", ErrUntrusted, "the server's TLS certificate is not trusted", "configure its certificate authority"},
	{"no alternative certificate subject name", ErrUntrusted, "the server's TLS certificate is for another host", "check the URL"},
	{"does not match target host name", ErrUntrusted, "the server's TLS certificate is for another host", "check the URL"},
	{"alert bad certificate", ErrAuth, "the server wants a TLS client certificate", "configure one"},
	{"certificate required", ErrAuth, "the server wants a TLS client certificate", "configure one"},
	{"requested url returned error: 5", ErrUnreachable, "the server answered with an error of its own (5xx)", ""},
	// both, repository
	{"repository not found", ErrNotFound, "there is no such repository, or the credentials may not see it", "check the URL and the credentials"},
	{"does not appear to be a git repository", ErrNotFound, "there is no Git repository at this address", "check the URL"},
	{"' not found", ErrNotFound, "there is no such repository, or the credentials may not see it", "check the URL and the credentials"},
	{"not valid: is this a git repository", ErrNotFound, "the server answers, but not as a Git repository does", "check the URL"},
	{"dubious ownership", ErrRefused, "the folder belongs to another user", ""},
	// network
	{"could not resolve", ErrUnreachable, "the host name can not be resolved", "check the URL and the DNS"},
	{"connection refused", ErrUnreachable, "the connection was refused", ""},
	{"failed to connect", ErrUnreachable, "the server can not be reached", ""},
	{"couldn't connect to server", ErrUnreachable, "the server can not be reached", ""},
	{"connection timed out", ErrUnreachable, "the server does not answer", ""},
	{"operation timed out", ErrUnreachable, "the server does not answer", ""},
	{"operation too slow", ErrUnreachable, "the server sends nothing", ""},
	{"no route to host", ErrUnreachable, "the network has no way to the host", ""},
	{"network is unreachable", ErrUnreachable, "the network has no way to the host", ""},
	{"connection reset", ErrUnreachable, "the connection broke off", ""},
	{"connection closed", ErrUnreachable, "the connection broke off", ""},
	{"empty reply from server", ErrUnreachable, "the server closed the connection without an answer", ""},
	{"the remote end hung up", ErrUnreachable, "the connection broke off", ""},
	{"early eof", ErrUnreachable, "the connection broke off", ""},
	{"unexpected disconnect", ErrUnreachable, "the connection broke off", ""},
	{"expected flush after ref listing", ErrUnreachable, "the connection broke off", ""},
	// revision
	{"couldn't find remote ref", ErrUnknownRevision, "the ref is gone", ""},
	{"not our ref", ErrUnknownRevision, "the server does not have the commit", ""},
	{"unadvertised object", ErrUnknownRevision, "the server does not give out single commits", ""},
	{"no such remote ref", ErrUnknownRevision, "the ref is gone", ""},
	// the mirror, on our own disk
	{"no space left on device", nil, "the data directory is full", "give it more space"},
	{"not a git repository", ErrCorrupt, "the mirror is damaged", ""},
	{"is corrupt", ErrCorrupt, "the mirror is damaged", ""},
	{"object corrupt or missing", ErrCorrupt, "the mirror is damaged", ""},
	{"bad object", ErrCorrupt, "the mirror is damaged", ""},
	{"inflate:", ErrCorrupt, "the mirror is damaged", ""},
	{"unable to unpack", ErrCorrupt, "the mirror is damaged", ""},
	{"object file", ErrCorrupt, "the mirror is damaged", ""},
	{"packfile", ErrCorrupt, "the mirror is damaged", ""},
	{"pack has bad object", ErrCorrupt, "the mirror is damaged", ""},
	{"invalid sha1 pointer", ErrCorrupt, "the mirror is damaged", ""},
	{"bad ref", ErrCorrupt, "the mirror is damaged", ""},
	{"broken ref", ErrCorrupt, "the mirror is damaged", ""},
	{"unable to read", ErrCorrupt, "the mirror is damaged", ""},
	{"bad config", ErrCorrupt, "the mirror is damaged", ""},
	{"bad tree object", ErrCorrupt, "the mirror is damaged", ""},
	{"missing blob", ErrCorrupt, "the mirror is damaged", ""},
	{"missing tree", ErrCorrupt, "the mirror is damaged", ""},
	{"remote did not send all necessary objects", ErrCorrupt, "the mirror is damaged", ""},
	{"could not read", ErrUnreachable, "the server's answer could not be read", ""},
	{"unable to access", ErrUnreachable, "the server can not be reached", ""},
}

// classify says what the output of a git program that failed means. Text that is not known gives git's own line.
func classify(stderr string) symptom {
	low := strings.ToLower(stderr)
	local := withoutRemote(low)
	for _, s := range symptoms {
		text := low
		if s.is(ErrCorrupt) {
			text = local // what a server prints must not make us throw a mirror away
		}
		if strings.Contains(text, s.text) {
			return s
		}
	}
	return symptom{what: "git says: " + firstLine(stderr)}
}

// firstLine is git's own verdict: the first line with fatal: or error:, else the last line.
func firstLine(stderr string) string {
	last := "nothing"
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		for _, mark := range []string{"fatal: ", "error: "} {
			if text, ok := strings.CutPrefix(line, mark); ok {
				return text
			}
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// withoutRemote drops the lines that the server sent.
func withoutRemote(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "remote:") {
			out.WriteString(line)
		}
	}
	return out.String()
}
