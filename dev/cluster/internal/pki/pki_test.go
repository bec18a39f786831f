package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, err := NewCA(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Server(dir, "server", []string{"127.0.0.1", "localhost"}); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM())
	server := load(t, filepath.Join(dir, "server"))
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Error(err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: pool, DNSName: "example.com"}); err == nil {
		t.Error("valid for a name that was not asked for")
	}
	if err := ca.WriteClient(dir, "client", "user", "group"); err != nil {
		t.Fatal(err)
	}
	client := load(t, filepath.Join(dir, "client"))
	if client.Subject.CommonName != "user" || !slices.Equal(client.Subject.Organization, []string{"group"}) {
		t.Errorf("subject %s", client.Subject)
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	// A client's certificate is none for a server.
	if _, err := client.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a client certificate serves")
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: mode %v, %v", info.Mode(), err)
	}
}

func load(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(path+".crt", path+".key")
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}
