package chart

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	maxRedirects = 10
	// maxTransports bounds the connection pools kept for different certificates and proxies.
	maxTransports = 32
)

// clients makes HTTP clients that carry the checks of the package.
type clients struct {
	opts  Options
	guard *guard

	mu         sync.Mutex
	transports map[[32]byte]*http.Transport
}

func newClients(o Options) *clients {
	return &clients{
		opts: o, guard: &guard{allow: o.AllowPrivate, servers: o.APIServers},
		transports: map[[32]byte]*http.Transport{},
	}
}

// client is the HTTP client for a repository. Credentials are added to requests to origin only, or to all with
// PassCredentials; an origin of nil adds none.
func (c *clients) client(r Repo, origin *url.URL) (*http.Client, error) {
	base, err := c.transport(r)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &checked{base: base, policy: c.opts.Policy, origin: origin, credentials: r.Credentials},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= maxRedirects {
				return fmt.Errorf("redirects more than %d times", maxRedirects)
			}
			if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
				return &refusal{what: "redirect to " + shownURL(req.URL), reason: "leaves https"}
			}
			return nil
		},
	}, nil
}

// Dial connects to an address unless it may not be reached.
func (s *Store) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.clients.dialer().DialContext(ctx, network, address)
}

func (c *clients) dialer() *net.Dialer {
	return &net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second, ControlContext: c.guard.control}
}

// transport is the connection pool for the certificates and the proxy of a repository.
func (c *clients) transport(r Repo) (*http.Transport, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t %q %q", r.CA, r.ClientCert, r.ClientKey, r.Insecure, r.Proxy, r.NoProxy))
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.transports[key]; ok {
		return t, nil
	}
	config, err := r.tls()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		DialContext:         c.dialer().DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 20 * time.Second, ResponseHeaderTimeout: time.Minute, IdleConnTimeout: 90 * time.Second,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, MaxResponseHeaderBytes: 1 << 20,
	}
	if r.Proxy != "" {
		if _, err := url.Parse(r.Proxy); err != nil {
			return nil, r.errorf(ErrInvalid, "the proxy's URL can't be read")
		}
		config := &httpproxy.Config{HTTPProxy: r.Proxy, HTTPSProxy: r.Proxy, NoProxy: r.NoProxy}
		proxy := config.ProxyFunc()
		t.Proxy = func(req *http.Request) (*url.URL, error) { return proxy(req.URL) }
	}
	if len(c.transports) >= maxTransports {
		c.closeIdle()
		clear(c.transports)
	}
	c.transports[key] = t
	return t, nil
}

func (r Repo) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: r.Insecure} //nolint:gosec // the repository's owner asked for it
	if len(r.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(r.CA) {
			return nil, r.errorf(ErrInvalid, "the CA of its credentials holds no certificate in PEM")
		}
		config.RootCAs = pool
	}
	if len(r.ClientCert) > 0 || len(r.ClientKey) > 0 {
		pair, err := tls.X509KeyPair(r.ClientCert, r.ClientKey)
		if err != nil {
			return nil, r.errorf(ErrInvalid, "the client certificate of its credentials can't be used: %v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (c *clients) closeIdle() {
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdle()
}

// checked asks the policy before each request, and adds or removes credentials by where it goes.
type checked struct {
	base        http.RoundTripper
	policy      func(context.Context, *url.URL) error
	origin      *url.URL
	credentials Credentials
}

// RoundTrip implements http.RoundTripper.
func (c *checked) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, &refusal{what: "scheme " + strconv.Quote(req.URL.Scheme), reason: "is none of http and https"}
	}
	if err := c.policy(req.Context(), req.URL); err != nil {
		return nil, &refusal{what: shownURL(req.URL), reason: "is not allowed: " + err.Error(), err: err}
	}
	req = req.Clone(req.Context())
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	if !sameOrigin(first.URL, req.URL) {
		// The standard client would keep it for other ports and for subdomains.
		req.Header.Del("Authorization")
	}
	if c.origin != nil && (c.credentials.PassCredentials || sameOrigin(c.origin, req.URL)) {
		switch {
		case c.credentials.BearerToken != "":
			req.Header.Set("Authorization", "Bearer "+c.credentials.BearerToken)
		case c.credentials.Username != "" || c.credentials.Password != "":
			req.SetBasicAuth(c.credentials.Username, c.credentials.Password)
		}
	}
	return c.base.RoundTrip(req)
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// parse reads a repository's URL. User and password in it are taken for the credentials, when there are no others.
func (r Repo) parse() (*url.URL, Repo, error) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, r, r.errorf(ErrInvalid, "the URL can't be read")
	case u.Host == "":
		return nil, r, r.errorf(ErrInvalid, "the URL has no host")
	}
	if u.User != nil {
		if r.none() {
			r.Username = u.User.Username()
			r.Password, _ = u.User.Password()
		}
		u.User = nil
		r.URL = u.String()
	}
	return u, r, nil
}
