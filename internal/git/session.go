package git

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// helper answers git's question for credentials with the block it reads, if the question is for the host and scheme that
// the credentials are meant for: a redirect must not carry them away. The block is written several times, for git may
// ask again; only built-ins of the shell are used.
const helper = `!f() { test "$1" = get || return 0; h=; p=; while IFS= read -r l && test -n "$l"; do case "$l" in ` +
	`"host=$LOCKSTEP_GIT_HOST") h=1;; "protocol=$LOCKSTEP_GIT_SCHEME") p=1;; esac; done; test "$h$p" = 11 || return 0; `

const (
	helperFD  = helper + `while IFS= read -r l && test -n "$l"; do printf '%s\n' "$l"; done <&3; }; f`
	helperEnv = helper + `printf '%s\n' "$LOCKSTEP_GIT_ANSWER"; }; f`
	// answers is how often the credential block is written.
	answers = 8
)

// session is one conversation with a remote: what git is to be told about credentials, and what must be taken away after.
type session struct {
	addr     address
	settings []setting
	env      []string
	login    login
	block    string
	secrets  []string
	dir      string
}

// login is the way that a user name, password or token takes.
type login uint8

const (
	loginNone login = iota
	loginHeader
	loginHelper
)

// newSession prepares the credentials. The caller closes it.
func (s *Store) newSession(a address, c Credentials) (*session, error) {
	n := &session{addr: a, env: []string{"GIT_ALLOW_PROTOCOL=" + a.scheme}}
	var err error
	switch a.scheme {
	case "file":
		err = n.file(s)
	case "ssh":
		err = n.ssh(s, c)
	default:
		err = n.http(s, c)
	}
	if err != nil {
		n.close()
		return nil, &Error{Repo: a.remote, What: "credentials: " + err.Error(), Cause: err}
	}
	return n, nil
}

func (n *session) close() {
	if n.dir != "" {
		_ = os.RemoveAll(n.dir) // what stays is taken away with the store's private folder
	}
}

func (n *session) set(name, value string) { n.settings = append(n.settings, setting{name, value}) }

// put writes what a program only takes as a file into a folder of this session.
func (n *session) put(s *Store, name, text string) (string, error) {
	if n.dir == "" {
		dir, err := os.MkdirTemp(s.private, "session-")
		if err != nil {
			return "", err
		}
		n.dir = dir
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // ssh does not read a key without
	}
	file := filepath.Join(n.dir, name)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// file allows upload-pack to read folders of other users below the local roots: an administrator named the roots. Only
// a global configuration reaches it.
func (n *session) file(s *Store) error {
	config, err := n.put(s, "config", "[safe]\n\tdirectory = *")
	n.env = append(n.env, "GIT_CONFIG_GLOBAL="+config)
	n.set("protocol.file.allow", "always")
	return err
}

func (n *session) http(s *Store, c Credentials) error {
	n.set("protocol.file.allow", "never")
	if n.addr.scheme == "http" {
		n.env[0] = "GIT_ALLOW_PROTOCOL=http:https" // a redirect may only go to the safer one
	}
	// A server that sends less than 100 bytes a second for a minute is gone.
	n.set("http.lowSpeedLimit", "100")
	n.set("http.lowSpeedTime", "60")
	n.set("http.sslVerify", strconv.FormatBool(!c.Insecure))
	for _, f := range []struct{ config, name, text string }{
		{"http.sslCAInfo", "ca.pem", c.CA}, {"http.sslCert", "client.pem", c.TLSClientCert}, {"http.sslKey", "client-key.pem", c.TLSClientKey},
	} {
		if f.text == "" {
			continue
		}
		file, err := n.put(s, f.name, f.text)
		if err != nil {
			return err
		}
		n.set(f.config, file)
	}
	n.proxy(s, c)
	return n.authenticate(c)
}

func (n *session) proxy(s *Store, c Credentials) {
	proxy, no := c.Proxy, c.NoProxy
	if proxy == "" {
		proxy = s.opt.Proxy
		if no == "" {
			no = s.opt.NoProxy
		}
	}
	if proxy == "" {
		return
	}
	n.set("http.proxy", proxy)
	n.env = append(n.env, "NO_PROXY="+no)
	n.hide(proxy)
}

func (n *session) authenticate(c Credentials) error {
	user, password := c.Username, c.Password
	if user == "" && password == "" {
		user, password = n.addr.user, n.addr.password
	}
	if user == "" && password != "" {
		user = "git" // a token alone: servers that take one do not look at the name
	}
	header := ""
	switch {
	case c.BearerToken != "":
		header = "Bearer " + c.BearerToken
		n.hide(c.BearerToken)
	case user != "" && c.ForceBasicAuth:
		header = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	if strings.ContainsAny(header+user+password, "\r\n\x00") {
		return fmt.Errorf("user name, password or token contains a line break")
	}
	n.hide(password, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	if header != "" {
		n.login = loginHeader
		n.set("http.extraHeader", "Authorization: "+header)
		n.set("http.followRedirects", "false")
		return nil
	}
	n.set("http.followRedirects", "initial")
	if user != "" {
		n.login = loginHelper
		n.block = "username=" + user + "\npassword=" + password + "\n"
		n.helper()
	}
	return nil
}

func (n *session) helper() {
	n.env = append(n.env, "LOCKSTEP_GIT_HOST="+n.addr.hostPort(), "LOCKSTEP_GIT_SCHEME="+n.addr.scheme)
	if secretOnFD {
		n.set("credential.helper", helperFD)
		return
	}
	n.set("credential.helper", helperEnv)
	n.env = append(n.env, "LOCKSTEP_GIT_ANSWER="+n.block)
	n.block = ""
}

// hide remembers secrets that must not appear in errors. Very short ones would only hide ordinary words.
func (n *session) hide(secrets ...string) {
	for _, secret := range secrets {
		if len(secret) > 2 {
			n.secrets = append(n.secrets, secret)
		}
	}
}

// remote runs git in the conversation with the remote.
func (n *session) remote(ctx context.Context, s *Store, gitDir string, args ...string) ([]byte, error) {
	select {
	case s.network <- struct{}{}:
		defer func() { <-s.network }()
	case <-ctx.Done():
		return nil, &failure{cause: context.Cause(ctx)}
	}
	p := program{gitDir: gitDir, settings: n.settings, env: n.env, args: args}
	if n.block == "" {
		return s.run(ctx, p)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, &failure{cause: err}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		// Ends when the helper has read all, or with an error when read is closed.
		_, _ = write.WriteString(strings.Repeat(n.block+"\n", answers))
		_ = write.Close()
	})
	p.secret = read
	out, err := s.run(ctx, p)
	_ = read.Close()
	wg.Wait()
	return out, err
}

// explain makes the sentence of a failed conversation.
func (n *session) explain(err error) *Error {
	e := explain(n.addr.remote, err, n.secrets)
	if e.What == symptomPrompt {
		switch n.login {
		case loginHeader:
			e.What, e.Hint = "the server did not accept the credentials", "check user name, password or token"
		case loginHelper: // it did not answer, for the question was another server's
			e.What, e.Hint = "it redirects to another server, which the credentials are not sent to", "use the repository's present URL"
		}
	}
	return e
}

func explain(repo string, err error, secrets []string) *Error {
	e := &Error{Repo: repo}
	var f *failure
	if !errors.As(err, &f) {
		e.What, e.Cause = scrub(err.Error(), secrets), err
		return e
	}
	if f.cause != nil {
		e.What, e.Cause = f.cause.Error(), f.cause
		if errors.Is(f.cause, errTimeout) {
			e.Kind, e.What = ErrUnreachable, "no answer in time"
		}
		return e
	}
	c := classify(f.stderr)
	e.Kind, e.What, e.Hint = c.kind, scrub(c.what, secrets), c.hint
	return e
}

var errTimeout = fmt.Errorf("timed out: %w", context.DeadlineExceeded)
