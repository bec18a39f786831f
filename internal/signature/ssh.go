package signature

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"slices"

	"golang.org/x/crypto/ssh"
)

const (
	sshMagic = "SSHSIG"
	// sshNamespace keeps a signature that was made for something else from counting for a commit.
	sshNamespace = "git"
)

// envelope is a signature of ssh-keygen -Y sign, without its magic (OpenSSH, PROTOCOL.sshsig).
type envelope struct {
	Version   uint32
	Key       []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signed is what such a signature is over, without its magic.
type signed struct {
	Namespace, Reserved, Hash string
	Sum                       []byte
}

func (r *Ring) bySSH(payload, sig []byte, allowed []string) error {
	block, _ := pem.Decode(sig)
	if block == nil || len(block.Bytes) < len(sshMagic) || string(block.Bytes[:len(sshMagic)]) != sshMagic {
		return refuse("has an ssh signature that can't be read")
	}
	var e envelope
	if ssh.Unmarshal(block.Bytes[len(sshMagic):], &e) != nil || e.Version != 1 {
		return refuse("has an ssh signature that can't be read")
	}
	key, err := ssh.ParsePublicKey(e.Key)
	if err != nil {
		return refuse("has an ssh signature with a key that can't be read")
	}
	print := ssh.FingerprintSHA256(key)
	var s ssh.Signature
	over := signed{Namespace: e.Namespace, Reserved: e.Reserved, Hash: e.Hash, Sum: sumOf(e.Hash, payload)}
	switch {
	case e.Namespace != sshNamespace:
		return refuse("has an ssh signature made for %q, not for git", e.Namespace)
	case over.Sum == nil || ssh.Unmarshal(e.Signature, &s) != nil || s.Format == ssh.KeyAlgoRSA: // that is SHA-1
		return refuse("has an ssh signature of a kind that is not taken")
	case key.Verify(append([]byte(sshMagic), ssh.Marshal(over)...), &s) != nil:
		return refuse("is signed by ssh key %s, and the signature does not hold", print)
	}
	name, known := r.ssh[print]
	switch {
	case !known:
		return refuse("is signed by ssh key %s, which argocd-gpg-keys-cm does not have", print)
	case !slices.Contains(allowed, print) && !slices.Contains(allowed, name):
		return refuse("is signed by ssh key %s, which the project does not name", print)
	}
	return nil
}

func sumOf(hash string, data []byte) []byte {
	switch hash {
	case "sha256":
		sum := sha256.Sum256(data)
		return sum[:]
	case "sha512":
		sum := sha512.Sum512(data)
		return sum[:]
	}
	return nil
}
