package signature

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// shortest is how many characters of a fingerprint name a key: fewer can be had by trying.
const shortest = 16

func (r *Ring) byPGP(payload, sig []byte, allowed []string, now time.Time) error {
	config := &packet.Config{Time: func() time.Time { return now }}
	block, err := armor.Decode(bytes.NewReader(sig))
	if err != nil {
		return refuse("has a signature that can't be read")
	}
	made, by, err := openpgp.VerifyDetachedSignature(r.pgp, bytes.NewReader(payload), block.Body, config)
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return refuse("is signed by a key that argocd-gpg-keys-cm does not have")
	case err != nil && by != nil:
		return refuse("is signed by key %s, and the signature does not hold: %v", idOf(by), err)
	case err != nil:
		return refuse("has a signature that does not hold: %v", err)
	}
	prints := []string{hex.EncodeToString(by.PrimaryKey.Fingerprint)}
	for i := range by.Subkeys {
		if key := by.Subkeys[i].PublicKey; made.IssuerKeyId != nil && key.KeyId == *made.IssuerKeyId {
			prints = append(prints, hex.EncodeToString(key.Fingerprint))
		}
	}
	for _, name := range allowed {
		bare := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, " ", ""), "0x"))
		for _, print := range prints {
			if len(bare) >= shortest && strings.HasSuffix(print, bare) {
				return nil
			}
		}
	}
	return refuse("is signed by key %s, which the project does not name", idOf(by))
}

func idOf(e *openpgp.Entity) string { return fmt.Sprintf("%016X", e.PrimaryKey.KeyId) }
