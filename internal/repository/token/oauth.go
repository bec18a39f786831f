package token

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// azureDevOps is the fixed id under which Azure DevOps asks for tokens.
	azureDevOps = "499b84ac-1321-427f-aa17-267ca6975798/.default"
	googleScope = "https://www.googleapis.com/auth/cloud-platform"
	// shortest is what a token lives whose answer does not say.
	shortest = 10 * time.Minute
)

// grant is an answer of OAuth 2.0 (RFC 6749 §5.1).
type grant struct {
	Token   string `json:"access_token"`
	Seconds int64  `json:"expires_in"`
}

func (g grant) ends(now time.Time) time.Time {
	if g.Seconds <= 0 {
		return now.Add(shortest)
	}
	return now.Add(time.Duration(g.Seconds) * time.Second)
}

// google exchanges a signed claim of a service account (RFC 7523); the token is the password of the account.
func (q request) google(ctx context.Context) (token, error) {
	var key struct {
		Email string `json:"client_email"`
		Key   string `json:"private_key"`
		URL   string `json:"token_uri"`
	}
	if json.Unmarshal([]byte(q.entry.GoogleKey), &key) != nil || key.Email == "" { // the cause could quote it
		return token{}, refuse("gcpServiceAccountKey is no key of a service account in JSON")
	}
	if key.URL == "" {
		key.URL = "https://oauth2.googleapis.com/token"
	}
	private, err := privateKey(key.Key)
	if err != nil {
		return token{}, refuse("account %s: %v", key.Email, err)
	}
	claim, err := signed(private, map[string]any{
		"iss": key.Email, "scope": googleScope, "aud": key.URL, "iat": q.now.Unix(), "exp": q.now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return token{}, err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {claim}}
	var g grant
	status, err := q.ask(ctx, call{service: "Google", method: http.MethodPost, url: key.URL, form: form}, &g)
	if err != nil {
		return token{}, err
	}
	if g.Token == "" {
		return token{}, refuse("account %s: Google gives no token for its key (%d)", key.Email, status)
	}
	return token{username: key.Email, password: g.Token, ends: g.ends(q.now)}, nil
}

// azure gets a bearer token for a service principal.
func (q request) azure(ctx context.Context) (token, error) {
	e := q.entry
	if e.AzureTenant == "" || e.AzureSecret == "" {
		return token{}, refuse("service principal %s: azureServicePrincipalTenantId or azureServicePrincipalClientSecret is missing", e.AzureClient)
	}
	base := strings.TrimSuffix(e.AzureURL, "/")
	if base == "" {
		base = "https://login.microsoftonline.com"
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {e.AzureClient}, "client_secret": {e.AzureSecret}, "scope": {azureDevOps},
	}
	var g grant
	at := base + "/" + url.PathEscape(e.AzureTenant) + "/oauth2/v2.0/token"
	status, err := q.ask(ctx, call{service: "Azure", method: http.MethodPost, url: at, form: form}, &g)
	if err != nil {
		return token{}, err
	}
	if g.Token == "" {
		return token{}, refuse("service principal %s: Azure gives no token for its secret (%d)", e.AzureClient, status)
	}
	return token{bearer: g.Token, ends: g.ends(q.now)}, nil
}
