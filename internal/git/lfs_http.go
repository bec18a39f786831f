package git

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	lfsType = "application/vnd.git-lfs+json"
	// maxBatch is the size of the answer that says where a file is.
	maxBatch     = 1 << 20
	maxRedirects = 5
)

// lfs is one download from the LFS server of a repository.
type lfs struct {
	repo Repo
	addr address
	// home is the repository's own server, which alone gets its credentials.
	home *url.URL
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// action says where a file is (docs/api/batch.md of Git LFS).
type action struct {
	Href          string            `json:"href"`
	Header        map[string]string `json:"header"`
	authenticated bool
}

// download gets a file by the batch API. .lfsconfig is not read: it would send credentials where a commit says.
func (s *Store) download(ctx context.Context, r Repo, p pointer) ([]byte, error) {
	a, err := s.locate(r.URL)
	if err != nil {
		return nil, err
	}
	if a.scheme != "https" && a.scheme != "http" {
		return nil, &Error{Repo: a.remote, Kind: ErrRefused, What: "Git LFS is read over https and http only", Hint: "use the repository's https URL"}
	}
	home, err := url.Parse(a.remote)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opt.FetchTimeout, errTimeout)
	defer cancel()
	l := &lfs{repo: r, addr: a, home: home, dial: s.opt.Dial}
	at, err := l.find(ctx, p)
	if err != nil {
		return nil, err
	}
	return l.get(ctx, at, p)
}

// find asks where the file is.
func (l *lfs) find(ctx context.Context, p pointer) (action, error) {
	body, err := json.Marshal(map[string]any{
		"operation": "download", "transfers": []string{"basic"}, "hash_algo": "sha256", "objects": []any{map[string]any{"oid": p.oid, "size": p.size}},
	})
	if err != nil {
		return action{}, err
	}
	endpoint := strings.TrimSuffix(strings.TrimSuffix(l.addr.remote, "/"), ".git") + ".git/info/lfs/objects/batch"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return action{}, err
	}
	req.Header.Set("Accept", lfsType)
	req.Header.Set("Content-Type", lfsType)
	l.authorize(req)
	data, err := l.do(req, maxBatch)
	if err != nil {
		return action{}, err
	}
	var answer struct {
		Objects []struct {
			OID           string              `json:"oid"`
			Authenticated bool                `json:"authenticated"`
			Actions       map[string]action   `json:"actions"`
			Error         *struct{ Code int } `json:"error"`
		} `json:"objects"`
	}
	if json.Unmarshal(data, &answer) != nil || len(answer.Objects) != 1 || answer.Objects[0].OID != p.oid {
		return action{}, errors.New("the LFS server's answer can't be read")
	}
	o := answer.Objects[0]
	if o.Error != nil {
		return action{}, fmt.Errorf("the LFS server does not have it (%d)", o.Error.Code)
	}
	at := o.Actions["download"]
	at.authenticated = o.Authenticated
	if at.Href == "" {
		return action{}, errors.New("the LFS server does not say where it is")
	}
	return at, nil
}

func (l *lfs) get(ctx context.Context, at action, p pointer) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Href, http.NoBody)
	if err != nil {
		return nil, errors.New("the LFS server names a URL that can't be read")
	}
	for k, v := range at.Header {
		req.Header.Set(k, v)
	}
	if req.Header.Get("Authorization") == "" && !at.authenticated && l.isHome(req.URL) {
		l.authorize(req)
	}
	data, err := l.do(req, p.size)
	if err != nil {
		return nil, err
	}
	if !p.is(data) {
		return nil, errors.New("the LFS server sends something else than its pointer says")
	}
	return data, nil
}

func (l *lfs) isHome(u *url.URL) bool { return u.Scheme == l.home.Scheme && u.Host == l.home.Host }

func (l *lfs) authorize(req *http.Request) {
	c := l.repo.Credentials
	user, password := c.Username, c.Password
	if user == "" && password == "" {
		user, password = l.addr.user, l.addr.password
	}
	switch {
	case c.BearerToken != "":
		req.Header.Set("Authorization", "Bearer "+c.BearerToken)
	case user == "" && password != "":
		req.SetBasicAuth("git", password)
	case user != "":
		req.SetBasicAuth(user, password)
	}
}

// do sends a request and reads up to most bytes.
func (l *lfs) do(req *http.Request, most int64) ([]byte, error) {
	transport, err := l.transport(req.URL)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: l.redirect}
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the URL may hold a signature
		}
		return nil, fmt.Errorf("%s does not answer: %w", req.URL.Host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("the LFS server at %s did not accept the credentials (%d): %w", req.URL.Host, resp.StatusCode, ErrAuth)
	default:
		return nil, fmt.Errorf("the LFS server at %s answers %d", req.URL.Host, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("the LFS server at %s sends more than it announced", req.URL.Host)
	}
	return data, err
}

// redirect keeps credentials and https.
func (l *lfs) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	case via[0].Method != http.MethodGet:
		return errors.New("it redirects to another address")
	case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("it redirects away from https")
	}
	if req.URL.Host != via[0].URL.Host {
		req.Header.Del("Authorization")
	}
	return nil
}

// transport reaches the repository's own server as git does, and any other within the bounds for addresses.
func (l *lfs) transport(to *url.URL) (*http.Transport, error) {
	c := l.repo.Credentials
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM([]byte(c.CA))
		config.RootCAs = pool
	}
	t := &http.Transport{TLSClientConfig: config, TLSHandshakeTimeout: 20 * time.Second, ResponseHeaderTimeout: time.Minute}
	home := l.home.Host
	if l.isHome(to) {
		config.InsecureSkipVerify = c.Insecure //nolint:gosec // the repository's owner asked for it
		if c.TLSClientCert != "" {
			pair, err := tls.X509KeyPair([]byte(c.TLSClientCert), []byte(c.TLSClientKey))
			if err != nil {
				return nil, errors.New("the client certificate of its credentials can't be used")
			}
			config.Certificates = []tls.Certificate{pair}
		}
	}
	direct := (&net.Dialer{Timeout: 20 * time.Second}).DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if l.dial == nil || address == hostWithPort(l.home) || address == home {
			return direct(ctx, network, address)
		}
		return l.dial(ctx, network, address)
	}
	if c.Proxy != "" {
		proxy := &httpproxy.Config{HTTPProxy: c.Proxy, HTTPSProxy: c.Proxy, NoProxy: c.NoProxy}
		choose := proxy.ProxyFunc()
		t.Proxy = func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
	}
	return t, nil
}

func hostWithPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), defaultPorts[u.Scheme])
}
