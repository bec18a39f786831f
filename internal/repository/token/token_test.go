package token_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/repository"
	"github.com/lockstep-cd/lockstep/internal/repository/token"
	"github.com/lockstep-cd/lockstep/test/gitserver"
	"github.com/lockstep-cd/lockstep/test/gitserver/gittest"
)

// service plays the three services over TLS. It checks every signature and counts the tokens it gives.
type service struct {
	*httptest.Server
	key   *rsa.PrivateKey
	token string

	mu    sync.Mutex
	given int
	ends  time.Time
}

func start(t *testing.T, ends time.Time) *service {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{key: key, token: "t0ken-CANARY", ends: ends}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/team/app/installation", s.signed(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"id": 77}`)
	}))
	mux.HandleFunc("POST /app/installations/77/access_tokens", s.signed(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		s.give(w, `{"token": %q, "expires_at": "`+ends.Format(time.RFC3339)+`"}`)
	}))
	mux.HandleFunc("POST /google", func(w http.ResponseWriter, r *http.Request) {
		if !s.proves(r.FormValue("assertion")) {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		s.give(w, `{"access_token": %q, "expires_in": 3600}`)
	})
	mux.HandleFunc("POST /tenant/oauth2/v2.0/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_secret") != "right-CANARY" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		s.give(w, `{"access_token": %q, "expires_in": 3600}`)
	})
	s.Server = httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *service) give(w http.ResponseWriter, format string) {
	s.mu.Lock()
	s.given++
	s.mu.Unlock()
	_, _ = fmt.Fprintf(w, format, s.token)
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

func (s *service) signed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.proves(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

// proves verifies a token as RFC 7515 says.
func (s *service) proves(jwt string) bool {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return err == nil && rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], signature) == nil
}

func (s *service) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(s.key)}))
}

func (s *service) ca(string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func (s *service) google() string {
	text, _ := json.Marshal(map[string]string{"client_email": "robot@x", "private_key": s.pem(), "token_uri": s.URL + "/google"})
	return string(text)
}

// A GitHub App opens a repository of a real Git server, which takes its token and nothing else; the installation is found
// by the repository. The token is asked for once while it lasts, and again before it ends.
func TestGitHubAppOpensARepository(t *testing.T) {
	now := time.Now()
	s := start(t, now.Add(time.Hour))
	srv := gittest.Start(t, gitserver.Options{TLS: true, Username: "x-access-token", Password: s.token})
	repo := srv.Create("team/app", map[string]string{"a": "1"})
	entry := repository.Entry{URL: repo.URL(), Exchanged: repository.Exchanged{GitHubApp: "12", GitHubKey: s.pem(), GitHubURL: s.URL + "/"}}
	x := &token.Exchange{Now: func() time.Time { return now }}
	store, err := git.Open(git.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for range 3 {
		got, err := x.Apply(t.Context(), entry, s.ca)
		if err != nil {
			t.Fatal(err)
		}
		r := git.Repo{URL: got.URL, Credentials: git.Credentials{Username: got.Username, Password: got.Password, CA: srv.CA()}}
		if refs, err := store.Refs(t.Context(), r); err != nil || refs.Head != repo.Resolve("main") {
			t.Fatalf("refs with the App's token: %+v, %v", refs, err)
		}
	}
	if s.count() != 1 {
		t.Errorf("%d tokens for three uses", s.count())
	}
	now = now.Add(56 * time.Minute)
	if _, err := x.Apply(t.Context(), entry, s.ca); err != nil || s.count() != 2 {
		t.Errorf("four minutes before its end: %d tokens, %v", s.count(), err)
	}
	now = now.Add(-56 * time.Minute)
	x.Forget(entry)
	if _, err := x.Apply(t.Context(), entry, s.ca); err != nil || s.count() != 3 {
		t.Errorf("a token that was not taken: %d tokens, %v", s.count(), err)
	}
}

func TestGoogleAndAzure(t *testing.T) {
	s := start(t, time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		given repository.Exchanged
		want  repository.Entry
	}{
		"google": {repository.Exchanged{GoogleKey: s.google()}, repository.Entry{URL: "https://h/r", Username: "robot@x", Password: s.token}},
		"azure": {
			repository.Exchanged{AzureClient: "c", AzureSecret: "right-CANARY", AzureTenant: "tenant", AzureURL: s.URL},
			repository.Entry{URL: "https://h/r", BearerToken: s.token},
		},
	} {
		got, err := new(token.Exchange).Apply(t.Context(), repository.Entry{URL: "https://h/r", Exchanged: c.given}, s.ca)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Every refusal says which credentials are meant and holds nothing of them.
func TestRefusals(t *testing.T) {
	s := start(t, time.Now().Add(time.Hour))
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	foreign := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(other)}))
	for name, c := range map[string]struct {
		given repository.Exchanged
		want  string
	}{
		"key":          {repository.Exchanged{GitHubApp: "12", GitHubKey: "CANARY"}, "GitHub App 12: the private key is not in PEM"},
		"foreign key":  {repository.Exchanged{GitHubApp: "12", GitHubKey: foreign, GitHubURL: s.URL}, "GitHub App 12: GitHub does not accept its private key (401)"},
		"installation": {repository.Exchanged{GitHubApp: "12", GitHubInstallation: "78", GitHubKey: s.pem(), GitHubURL: s.URL}, "GitHub App 12: it has no installation 78 (404)"},
		"plain http":   {repository.Exchanged{GitHubApp: "12", GitHubKey: s.pem(), GitHubURL: "http://h"}, "is no https URL, and credentials are not sent to any other"},
		"google":       {repository.Exchanged{GoogleKey: `{"CANARY": `}, "gcpServiceAccountKey is no key of a service account in JSON"},
		"azure":        {repository.Exchanged{AzureClient: "c", AzureSecret: "wr-CANARY", AzureTenant: "tenant", AzureURL: s.URL}, "service principal c: Azure gives no token for its secret (401)"},
		"azure tenant": {repository.Exchanged{AzureClient: "c"}, "azureServicePrincipalTenantId or azureServicePrincipalClientSecret is missing"},
		"workload":     {repository.Exchanged{AzureWorkload: true}, "useAzureWorkloadIdentity is not available"},
	} {
		e := repository.Entry{URL: "https://u:CANARY@h/team/app", Exchanged: c.given}
		_, err := new(token.Exchange).Apply(t.Context(), e, s.ca)
		if !errors.Is(err, token.ErrExchange) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "repository https://h/team/app: ") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: shows a credential: %v", name, err)
		}
	}
}
