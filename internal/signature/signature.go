// Package signature owns the question who signed a commit: signatures of OpenPGP and of ssh keys, held against the keys of
// argocd-gpg-keys-cm. It is pure; no program is run and no key is looked for anywhere else.
//
// It imports nothing of ours.
package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"
)

// ErrUntrusted is the kind of every refusal.
var ErrUntrusted = errors.New("signature not accepted")

// Ring are the keys that may be named. The zero value has none.
type Ring struct {
	pgp     openpgp.EntityList
	ssh     map[string]string // name in the ConfigMap by fingerprint
	version string
	broken  []string
}

// NewRing reads the values of argocd-gpg-keys-cm: armored OpenPGP keys, and lines as in authorized_keys for keys of ssh.
// What can not be read is left out, and Broken names it.
func NewRing(data map[string]string) *Ring {
	r := &Ring{ssh: map[string]string{}}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		_, _ = fmt.Fprintf(h, "%q %q\n", name, data[name]) // a hash takes every write
		if !r.add(name, data[name]) {
			r.broken = append(r.broken, name)
		}
	}
	r.version = hex.EncodeToString(h.Sum(nil)[:8])
	return r
}

func (r *Ring) add(name, text string) bool {
	if strings.Contains(text, "-----BEGIN PGP PUBLIC KEY BLOCK-----") {
		list, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
		r.pgp = append(r.pgp, list...)
		return err == nil && len(list) > 0
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return false
	}
	r.ssh[ssh.FingerprintSHA256(key)] = name
	return true
}

// Version names the keys; another version may judge otherwise.
func (r *Ring) Version() string { return r.version }

// Broken are the names of the values that hold no key.
func (r *Ring) Broken() []string { return r.broken }

// Commit says why a commit is not signed by one of the allowed keys; nil when it is. Raw is the commit object as Git keeps
// it. A key of OpenPGP is named by the end of its fingerprint, 16 characters or more, a key of ssh by its fingerprint
// SHA256:… or by its name in the ConfigMap. Keys and signatures are judged by the time now.
func (r *Ring) Commit(raw []byte, allowed []string, now time.Time) error {
	payload, sig := split(raw)
	switch {
	case len(sig) == 0:
		return refuse("is not signed")
	case bytes.HasPrefix(sig, []byte("-----BEGIN SSH SIGNATURE-----")):
		return r.bySSH(payload, sig, allowed)
	case bytes.HasPrefix(sig, []byte("-----BEGIN PGP SIGNATURE-----")):
		return r.byPGP(payload, sig, allowed, now)
	}
	return refuse("has a signature of a kind that is not known; OpenPGP and ssh are")
}

// split takes the signature out of a commit; what remains is what was signed.
func split(raw []byte) (payload, sig []byte) {
	in, body := false, false
	for line := range bytes.Lines(raw) {
		switch {
		case body:
		case bytes.Equal(line, []byte("\n")):
			body, in = true, false
		case bytes.HasPrefix(line, []byte("gpgsig ")):
			in = true
			sig = append(sig, line[len("gpgsig "):]...)
			continue
		case in && bytes.HasPrefix(line, []byte(" ")):
			sig = append(sig, line[1:]...)
			continue
		default:
			in = false
		}
		payload = append(payload, line...)
	}
	return payload, sig
}

func refuse(format string, args ...any) error { return untrusted(fmt.Sprintf(format, args...)) }

// untrusted is of the kind ErrUntrusted.
type untrusted string

func (e untrusted) Error() string        { return string(e) }
func (e untrusted) Is(target error) bool { return target == ErrUntrusted }
