package webhook

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strings"
)

// The keys of the Secret argocd-secret. The last two are ours; the others are Argo CD's (reference §3.6).
const (
	keyGitHub          = "webhook.github.secret"
	keyGitLab          = "webhook.gitlab.secret"
	keyGogs            = "webhook.gogs.secret"
	keyBitbucket       = "webhook.bitbucket.uuid"
	keyBitbucketServer = "webhook.bitbucketserver.secret"
	keyAzureUser       = "webhook.azuredevops.username"
	keyAzurePassword   = "webhook.azuredevops.password"
	keyHarbor          = "webhook.harbor.secret"
	keyRegistry        = "webhook.registry.secret"
	keyAWS             = "webhook.aws.secret"
)

// Secrets are what senders must show, by key of argocd-secret; see Keys. A key that is missing or empty is not set.
type Secrets map[string]string

// Keys are the keys of argocd-secret that are read.
func Keys() []string {
	return []string{
		keyGitHub, keyGitLab, keyGogs, keyBitbucket, keyBitbucketServer, keyAzureUser, keyAzurePassword, keyHarbor, keyRegistry, keyAWS,
	}
}

// wanted is the first of the keys that is set. Without one an event is taken where no secret is set at all, and refused
// where another sender has one: else whoever can not sign would only have to name another forge.
func (s Secrets) wanted(keys ...string) (string, error) {
	for _, k := range keys {
		if s[k] != "" {
			return s[k], nil
		}
	}
	for _, k := range Keys() {
		if s[k] != "" {
			return "", &Error{http.StatusUnauthorized, fmt.Sprintf(
				"%s is set and %s is not; set it in the Secret argocd-secret to take the events of this sender", k, keys[0])}
		}
	}
	return "", nil
}

func mismatch(key string) error {
	return &Error{http.StatusUnauthorized, "the secret that the event shows is not the one of " + key + "; set the same at the sender"}
}

// same compares without telling by its time where two texts differ.
func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// signed is one header that holds a signature of the body.
type signed struct {
	header, prefix string
	hash           func() hash.Hash
}

// verifySigned checks the first, which is the strongest, signature that is there.
func verifySigned(r Request, secret string, ways ...signed) error {
	if secret == "" {
		return nil
	}
	for _, way := range ways {
		sent := r.Header.Get(way.header)
		if sent == "" {
			continue
		}
		sum, err := hex.DecodeString(strings.TrimPrefix(sent, way.prefix))
		mac := hmac.New(way.hash, []byte(secret))
		_, _ = mac.Write(r.Body) // a hash takes every write
		if err != nil || !hmac.Equal(mac.Sum(nil), sum) {
			return &Error{http.StatusUnauthorized, "the signature does not match the secret that is configured"}
		}
		return nil
	}
	return &Error{http.StatusUnauthorized, "a secret is configured and the event is not signed; set the same secret at the sender"}
}

func hubSignatures() []signed {
	return []signed{{"X-Hub-Signature-256", "sha256=", sha256.New}, {"X-Hub-Signature", "sha1=", sha1.New}, {"X-Gogs-Signature", "", sha256.New}}
}

func verifyGitHub(r Request, s Secrets) error {
	secret, err := s.wanted(keyGitHub)
	if err != nil {
		return err
	}
	return verifySigned(r, secret, hubSignatures()...)
}

// verifyGogs is for Gogs, Gitea and Forgejo, which may as well share the secret of GitHub, whose events they imitate.
func verifyGogs(r Request, s Secrets) error {
	secret, err := s.wanted(keyGogs, keyGitHub)
	if err != nil {
		return err
	}
	return verifySigned(r, secret, hubSignatures()...)
}

func verifyGitLab(r Request, s Secrets) error {
	return verifyToken(s, r.Header.Get("X-Gitlab-Token"), keyGitLab)
}

func verifyBitbucket(r Request, s Secrets) error {
	return verifyToken(s, strings.Trim(r.Header.Get("X-Hook-UUID"), "{}"), keyBitbucket)
}

func verifyBitbucketServer(r Request, s Secrets) error {
	secret, err := s.wanted(keyBitbucketServer)
	if err != nil {
		return err
	}
	return verifySigned(r, secret, signed{"X-Hub-Signature", "sha256=", sha256.New})
}

// verifyAzure checks the user name, where one is set, and the password.
func verifyAzure(r Request, s Secrets) error {
	password, err := s.wanted(keyAzurePassword, keyAzureUser)
	if err != nil || password == "" {
		return err
	}
	user, sent, _ := (&http.Request{Header: r.Header}).BasicAuth()
	if !same(user, s[keyAzureUser]) || !same(sent, s[keyAzurePassword]) {
		return mismatch(keyAzureUser + " and " + keyAzurePassword)
	}
	return nil
}

func verifyAWS(r Request, s Secrets) error { return verifyToken(s, shown(r), keyAWS) }

// verifyRegistry takes the secret of Harbor from Harbor, and that of all registries from any.
func verifyRegistry(r Request, s Secrets) error {
	if isHarbor(r) {
		return verifyToken(s, shown(r), keyHarbor, keyRegistry)
	}
	return verifyToken(s, shown(r), keyRegistry)
}

// verifyToken checks a secret that is sent as it is.
func verifyToken(s Secrets, sent string, keys ...string) error {
	secret, err := s.wanted(keys...)
	switch {
	case err != nil || secret == "":
		return err
	case sent == "":
		return &Error{http.StatusUnauthorized, "a secret is configured and the event shows none; set the same secret at the sender"}
	case !same(sent, strings.Trim(secret, "{}")) && !same(sent, secret):
		return mismatch(keys[0])
	}
	return nil
}

// shown is the secret in the header Authorization (as it is, as a bearer token, or as the password of any user), or in the
// query parameter secret, for registries that can not set a header.
func shown(r Request) string {
	auth := r.Header.Get("Authorization")
	if _, password, ok := (&http.Request{Header: r.Header}).BasicAuth(); ok {
		return password
	}
	if token, ok := strings.CutPrefix(auth, "Bearer "); ok {
		return token
	}
	if auth != "" {
		return auth
	}
	return r.Query.Get("secret")
}
