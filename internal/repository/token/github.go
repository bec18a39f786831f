package token

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// github gets a token of an App's installation; GitHub takes it as the password of x-access-token.
func (q request) github(ctx context.Context) (token, error) {
	e := q.entry
	base := strings.TrimSuffix(e.GitHubURL, "/")
	if base == "" {
		base = "https://api.github.com"
	}
	key, err := privateKey(e.GitHubKey)
	if err != nil {
		return token{}, refuse("GitHub App %s: %v", e.GitHubApp, err)
	}
	// A minute back, for clocks that differ; GitHub takes at most ten minutes.
	proof, err := signed(key, map[string]any{"iss": e.GitHubApp, "iat": q.now.Add(-time.Minute).Unix(), "exp": q.now.Add(8 * time.Minute).Unix()})
	if err != nil {
		return token{}, err
	}
	installation := e.GitHubInstallation
	if installation == "" {
		if installation, err = q.installation(ctx, base, proof); err != nil {
			return token{}, err
		}
	}
	var answer struct {
		Token string    `json:"token"`
		Ends  time.Time `json:"expires_at"`
	}
	status, err := q.ask(ctx, call{
		service: "GitHub", method: http.MethodPost, bearer: proof,
		url: base + "/app/installations/" + url.PathEscape(installation) + "/access_tokens",
	}, &answer)
	switch {
	case err != nil:
		return token{}, err
	case status == http.StatusUnauthorized:
		return token{}, refuse("GitHub App %s: GitHub does not accept its private key (401)", e.GitHubApp)
	case status == http.StatusNotFound:
		return token{}, refuse("GitHub App %s: it has no installation %s (404)", e.GitHubApp, installation)
	case status != http.StatusCreated || answer.Token == "":
		return token{}, refuse("GitHub App %s: GitHub gives no token (%d)", e.GitHubApp, status)
	}
	return token{username: "x-access-token", password: answer.Token, ends: answer.Ends}, nil
}

// installation finds the App's installation that may read the repository.
func (q request) installation(ctx context.Context, base, proof string) (string, error) {
	owner, name := ownerAndName(q.entry.URL)
	if owner == "" || name == "" {
		return "", refuse("GitHub App %s: the URL names no owner and repository; set githubAppInstallationID", q.entry.GitHubApp)
	}
	var answer struct {
		ID int64 `json:"id"`
	}
	status, err := q.ask(ctx, call{
		service: "GitHub", method: http.MethodGet, bearer: proof,
		url: base + "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name) + "/installation",
	}, &answer)
	switch {
	case err != nil:
		return "", err
	case status == http.StatusUnauthorized:
		return "", refuse("GitHub App %s: GitHub does not accept its private key (401)", q.entry.GitHubApp)
	case status != http.StatusOK || answer.ID == 0:
		return "", refuse("GitHub App %s: is not installed for %s/%s (%d)", q.entry.GitHubApp, owner, name, status)
	}
	return strconv.FormatInt(answer.ID, 10), nil
}

// ownerAndName are the last two parts of a repository's path.
func ownerAndName(raw string) (owner, name string) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", ""
	}
	parts := strings.Split(strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"), "/")
	if len(parts) < 2 {
		return "", ""
	}
	return parts[len(parts)-2], parts[len(parts)-1]
}
