package token

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
)

// privateKey reads an RSA key in PEM, PKCS #1 or #8.
func privateKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, refuse("the private key is not in PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if rsaKey, ok := key.(*rsa.PrivateKey); err == nil && ok {
		return rsaKey, nil
	}
	return nil, refuse("the private key is no unencrypted RSA key") // the cause could quote it
}

// signed is a JSON Web Token of the claims, signed with RS256 (RFC 7515).
func signed(key *rsa.PrivateKey, claims map[string]any) (string, error) {
	part := func(v any) string {
		text, _ := json.Marshal(v) // strings and numbers only: can not fail
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]string{"alg": "RS256", "typ": "JWT"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", refuse("the private key does not sign: %v", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
