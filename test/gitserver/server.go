// Package gitserver owns a real Git server for tests and the demo: git http-backend behind net/http, with or without TLS
// and authentication, and git-upload-pack behind an ssh server, on 127.0.0.1. Repositories are made from maps of files.
// Its answers can be broken on purpose and are counted.
//
// It imports nothing of ours. Package gittest wraps it for tests.
package gitserver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Options of a Server. The zero value is an open http server in a temporary folder on a free port.
type Options struct {
	// Dir holds the repositories as <name>.git; empty makes a temporary folder that Close removes.
	Dir string
	// Addr is where http is served; default 127.0.0.1:0.
	Addr string
	// TLS serves https with a certificate of an authority of its own; see Server.CA.
	TLS bool
	// SSH starts an ssh server too, on a free port; it accepts the key of Server.ClientKey only.
	SSH bool
	// Username and Password are asked for when Password is set, BearerToken when it is set.
	Username, Password, BearerToken string
	// Push allows pushing, with the same authentication.
	Push bool
	// ProtocolV0 makes the server speak the first protocol only. It refuses commits that no ref names then.
	ProtocolV0 bool
}

// Counts are the requests seen, http and ssh together where both know them.
type Counts struct {
	// Discoveries are GETs of info/refs: one for each ls-remote, fetch or push.
	Discoveries int
	// Fetches are the requests that sent objects.
	Fetches int
	// Pushes are the requests that took objects.
	Pushes int
	// SSH are the commands run over ssh.
	SSH int
	// Denied are requests with no or wrong credentials.
	Denied int
}

// Fault is how the http server misbehaves. The zero value behaves.
type Fault struct {
	// Status is answered instead of anything else.
	Status int
	// Delay is waited before each answer, or until the client has gone.
	Delay time.Duration
	// Cut closes the connection after so many bytes of an answer.
	Cut int64
}

// Server is a running server.
type Server struct {
	opt  Options
	git  string
	temp string
	addr string
	pki  *pki
	ssh  *sshServer

	mu     sync.Mutex
	http   *http.Server
	served chan struct{}
	counts Counts
	fault  Fault
}

// Start starts a server. Close ends it.
func Start(o Options) (*Server, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	s := &Server{opt: o, git: git}
	if o.Dir == "" {
		if s.temp, err = os.MkdirTemp("", "gitserver-"); err != nil {
			return nil, err
		}
		s.opt.Dir = s.temp
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) start() (err error) {
	if err := os.MkdirAll(s.opt.Dir, 0o755); err != nil {
		return err
	}
	if s.opt.Dir, err = filepath.Abs(s.opt.Dir); err != nil {
		return err
	}
	if s.opt.TLS {
		if s.pki, err = newPKI(); err != nil {
			return err
		}
	}
	s.addr = s.opt.Addr
	if s.addr == "" {
		s.addr = "127.0.0.1:0"
	}
	if err := s.Resume(); err != nil {
		return err
	}
	if s.opt.SSH {
		s.ssh, err = startSSH(s)
	}
	return err
}

// Resume listens again after Pause, on the same port.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("git server: %w", err)
	}
	s.addr = l.Addr().String()
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	served := make(chan struct{})
	s.http, s.served = srv, served
	go func() {
		defer close(served)
		if s.pki != nil {
			srv.TLSConfig = s.pki.server()
			_ = srv.ServeTLS(l, "", "") // ends with ErrServerClosed
			return
		}
		_ = srv.Serve(l)
	}()
	return nil
}

// Pause stops listening: connections are refused until Resume.
func (s *Server) Pause() error {
	s.mu.Lock()
	srv, served := s.http, s.served
	s.http = nil
	s.mu.Unlock()
	if srv == nil {
		return nil
	}
	err := srv.Close()
	<-served
	return err
}

// Close ends the server and removes its temporary folder.
func (s *Server) Close() error {
	err := s.Pause()
	if s.ssh != nil {
		err = errors.Join(err, s.ssh.close())
	}
	if s.temp != "" {
		err = errors.Join(err, os.RemoveAll(s.temp))
	}
	return err
}

// Break makes http misbehave until it is called with the zero Fault.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Counts are the requests since the start.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

func (s *Server) count(f func(*Counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.counts)
}

// Base is the http(s) address of the server, without a slash at its end.
func (s *Server) Base() string {
	scheme := "http://"
	if s.opt.TLS {
		scheme = "https://"
	}
	return scheme + s.addr
}

// URL is the http(s) URL of a repository.
func (s *Server) URL(name string) string { return s.Base() + "/" + name + ".git" }

// SSHURL is the ssh:// URL of a repository; empty without Options.SSH.
func (s *Server) SSHURL(name string) string {
	if s.ssh == nil {
		return ""
	}
	return "ssh://git@" + s.ssh.addr + "/" + name + ".git"
}

// CA is the PEM of the authority of an https server.
func (s *Server) CA() string {
	if s.pki == nil {
		return ""
	}
	return s.pki.caPEM
}

// KnownHosts is the known_hosts line of the ssh server.
func (s *Server) KnownHosts() string { return s.ssh.knownHosts }

// ClientKey is the private key that the ssh server accepts.
func (s *Server) ClientKey() string { return s.ssh.clientKey }

// Dir is the folder of the bare repositories.
func (s *Server) Dir() string { return s.opt.Dir }
