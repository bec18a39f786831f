package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// urlMap is an HTTP proxy that answers for public URLs from this machine: plain requests and, with certificates of an
// authority of its own, https ones. What it has no answer for is 404 and remembered; nothing goes out.
type urlMap struct {
	listener net.Listener
	// plain serves the proxy's own connections, secure those inside of a CONNECT.
	plain, secure *http.Server
	inner         *handover

	ca    *x509.Certificate
	key   *ecdsa.PrivateKey
	caPEM []byte

	mu     sync.Mutex
	certs  map[string]*tls.Certificate
	routes []route
	missed map[string]bool
	wg     sync.WaitGroup
}

// route is what a host and the beginning of a path lead to.
type route struct {
	host, prefix string
	to           http.Handler
}

func startURLMap() (*urlMap, error) {
	m := &urlMap{certs: map[string]*tls.Certificate{}, missed: map[string]bool{}}
	if err := m.makeAuthority(); err != nil {
		return nil, err
	}
	var err error
	if m.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	m.inner = &handover{conns: make(chan net.Conn), closed: make(chan struct{}), address: m.listener.Addr()}
	m.plain = &http.Server{Handler: http.HandlerFunc(m.proxy), ReadHeaderTimeout: time.Minute}
	m.secure = &http.Server{
		Handler: http.HandlerFunc(m.answer), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{GetCertificate: m.certificate, MinVersion: tls.VersionTLS12},
	}
	m.wg.Go(func() { _ = m.plain.Serve(m.listener) }) // both end with ErrServerClosed
	m.wg.Go(func() { _ = m.secure.ServeTLS(m.inner, "", "") })
	return m, nil
}

// URL of the proxy.
func (m *urlMap) URL() string { return "http://" + m.listener.Addr().String() }

// add lets what lies below prefix at a host be answered by to. Longer prefixes win.
func (m *urlMap) add(host, prefix string, to http.Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.routes = append(m.routes, route{host, strings.TrimRight(prefix, "/"), to})
	slices.SortStableFunc(m.routes, func(a, b route) int { return len(b.prefix) - len(a.prefix) })
}

// misses are the URLs that were asked for and lead nowhere.
func (m *urlMap) misses() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	urls := make([]string, 0, len(m.missed))
	for u := range m.missed {
		urls = append(urls, u)
	}
	slices.Sort(urls)
	return urls
}

func (m *urlMap) close() {
	_ = m.inner.Close()
	_ = m.plain.Close()
	_ = m.secure.Close()
	m.wg.Wait()
}

// proxy takes a CONNECT's connection over, or answers a plain request.
func (m *urlMap) proxy(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		m.answer(w, r)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = conn.Close()
		return
	}
	m.inner.give(conn)
}

func (m *urlMap) answer(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	m.mu.Lock()
	i := slices.IndexFunc(m.routes, func(to route) bool {
		rest, ok := strings.CutPrefix(r.URL.Path, to.prefix)
		return to.host == host && ok && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, ".git/"))
	})
	if i < 0 {
		m.missed[host+r.URL.Path] = true
		m.mu.Unlock()
		http.Error(w, "the try-out has nothing at this URL", http.StatusNotFound)
		return
	}
	to := m.routes[i].to
	m.mu.Unlock()
	to.ServeHTTP(w, r)
}

func (m *urlMap) makeAuthority() (err error) {
	if m.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "try-out authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &m.key.PublicKey, m.key)
	if err != nil {
		return err
	}
	m.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	m.ca, err = x509.ParseCertificate(der)
	return err
}

// certificate makes a certificate for whatever host is asked for.
func (m *urlMap) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello.ServerName == "" {
		return nil, errors.New("no server name")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.certs[hello.ServerName]; ok {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(m.certs)) + 2), Subject: pkix.Name{CommonName: hello.ServerName}, DNSNames: []string{hello.ServerName},
		NotBefore: m.ca.NotBefore, NotAfter: m.ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, m.ca, &m.key.PublicKey, m.key)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", hello.ServerName, err)
	}
	m.certs[hello.ServerName] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: m.key}
	return m.certs[hello.ServerName], nil
}

// handover is a listener for connections that came another way.
type handover struct {
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
	address net.Addr
}

func (h *handover) give(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return h.address }
