// Package pki makes the certificates and keys of one local cluster: a CA, serving
// and client certificates signed by it, and the key that signs service-account
// tokens. It knows nothing of Kubernetes components, processes or the network.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is long enough for a cluster that is kept, short enough to be harmless.
const validity = 365 * 24 * time.Hour

// CA signs certificates.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// NewCA makes a self-signed CA and writes it as name.crt and name.key into dir.
func NewCA(dir, name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("%s: generate key: %w", name, err)
	}
	tpl := template(name, nil)
	tpl.IsCA, tpl.BasicConstraintsValid = true, true
	tpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("%s: sign: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s: parse: %w", name, err)
	}
	pair := newPair(der, key)
	return &CA{cert: cert, key: key, pem: pair.Cert}, pair.write(dir, name)
}

// PEM is the CA's certificate.
func (c *CA) PEM() []byte { return c.pem }

// Pair is a certificate and its key, both PEM.
type Pair struct{ Cert, Key []byte }

// Server issues a serving certificate for hosts (names or IP addresses) and writes
// it as name.crt and name.key into dir.
func (c *CA) Server(dir, name string, hosts []string) error {
	tpl := template(name, nil)
	tpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			tpl.IPAddresses = append(tpl.IPAddresses, ip)
		} else {
			tpl.DNSNames = append(tpl.DNSNames, h)
		}
	}
	pair, err := c.issue(tpl)
	if err != nil {
		return err
	}
	return pair.write(dir, name)
}

// Client issues a client certificate for a user and its groups. Nothing is written.
func (c *CA) Client(user string, groups ...string) (Pair, error) {
	tpl := template(user, groups)
	tpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return c.issue(tpl)
}

// WriteClient is Client, written as name.crt and name.key into dir.
func (c *CA) WriteClient(dir, name, user string, groups ...string) error {
	pair, err := c.Client(user, groups...)
	if err != nil {
		return err
	}
	return pair.write(dir, name)
}

func (c *CA) issue(tpl *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("%s: generate key: %w", tpl.Subject.CommonName, err)
	}
	tpl.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, tpl, c.cert, key.Public(), c.key)
	if err != nil {
		return Pair{}, fmt.Errorf("%s: sign: %w", tpl.Subject.CommonName, err)
	}
	return newPair(der, key), nil
}

// WriteTokenKey makes the key pair that signs service-account tokens: name.key
// (private) and name.pub (public) in dir.
func WriteTokenKey(dir, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("%s: generate key: %w", name, err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("%s: encode: %w", name, err)
	}
	pubPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
	if err := os.WriteFile(filepath.Join(dir, name+".pub"), pubPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), encodeKey(key), 0o600)
}

func template(cn string, groups []string) *x509.Certificate {
	// A serial number only has to differ within this CA; 120 random bits do.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		serial = big.NewInt(time.Now().UnixNano())
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: cn, Organization: groups},
		// One hour back: the machine's clock may be set while the cluster lives.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(validity),
	}
}

func newPair(der []byte, key *ecdsa.PrivateKey) Pair {
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  encodeKey(key),
	}
}

func encodeKey(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		// Only an unsupported curve can fail, and the curve is chosen above.
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func (p Pair) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600)
}
