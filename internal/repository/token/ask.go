package token

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// maxAnswer bounds an answer.
const maxAnswer = 1 << 20

// call is one request to a service, and who it is in sentences.
type call struct {
	service, method, url string
	bearer               string
	form                 url.Values
}

// ask sends a call and reads its answer into out; it returns the status. Only an answer of 2xx is read.
func (q request) ask(ctx context.Context, c call, out any) (int, error) {
	client, err := q.client(c.url)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	var body io.Reader
	if c.form != nil {
		body = strings.NewReader(c.form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		return 0, refuse("%s: its URL can't be read", c.service)
	}
	req.Header.Set("Accept", "application/json")
	if c.form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, refuse("%s at %s does not answer: %v", c.service, req.URL.Host, reason(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return 0, refuse("%s at %s: its answer can't be read", c.service, req.URL.Host)
	}
	return resp.StatusCode, nil
}

// reason is an error of the network without the URL.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// client speaks https, with the authority and the proxy of the repository. Plain http is refused: a key's signature is
// worth as much as the key for some minutes. Redirects are not followed.
func (q request) client(at string) (*http.Client, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, refuse("%s is no https URL, and credentials are not sent to any other", shown(at))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if pem := q.authority(at); pem != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM([]byte(pem))
		config.RootCAs = pool
	}
	t := &http.Transport{TLSClientConfig: config, TLSHandshakeTimeout: 20 * time.Second}
	if q.entry.Proxy != "" {
		config := &httpproxy.Config{HTTPSProxy: q.entry.Proxy, NoProxy: q.entry.NoProxy}
		proxy := config.ProxyFunc()
		t.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("it redirects, and credentials are not sent elsewhere")
	}}, nil
}

// shown is a URL without user and password.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(a URL that can't be read)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
