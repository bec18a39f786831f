package gitserver

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// sshServer runs git-upload-pack and git-receive-pack for one key.
type sshServer struct {
	s                           *Server
	l                           net.Listener
	config                      *ssh.ServerConfig
	addr, knownHosts, clientKey string

	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

func startSSH(s *Server) (*sshServer, error) {
	_, hostKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	host, err := ssh.NewSignerFromKey(hostKey)
	if err != nil {
		return nil, err
	}
	_, clientKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	client, err := ssh.NewSignerFromKey(clientKey)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(clientKey, "gitserver")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &sshServer{s: s, l: l, addr: l.Addr().String(), clientKey: string(pem.EncodeToMemory(block)), conns: map[net.Conn]bool{}}
	_, port, _ := net.SplitHostPort(h.addr)
	h.knownHosts = fmt.Sprintf("[127.0.0.1]:%s %s", port, ssh.MarshalAuthorizedKey(host.PublicKey()))
	h.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			s.count(func(c *Counts) { c.Denied++ })
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	h.config.AddHostKey(host)
	h.wg.Go(h.accept)
	return h, nil
}

func (h *sshServer) close() error {
	err := h.l.Close()
	h.mu.Lock()
	for c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.wg.Wait()
	return err
}

func (h *sshServer) accept() {
	for {
		c, err := h.l.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns[c] = true
		h.mu.Unlock()
		h.wg.Go(func() {
			h.serve(c)
			_ = c.Close()
			h.mu.Lock()
			delete(h.conns, c)
			h.mu.Unlock()
		})
	}
}

func (h *sshServer) serve(c net.Conn) {
	conn, channels, requests, err := ssh.NewServerConn(c, h.config)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	go ssh.DiscardRequests(requests)
	for open := range channels {
		if open.ChannelType() != "session" {
			_ = open.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := open.Accept()
		if err != nil {
			return
		}
		h.wg.Go(func() { h.session(channel, requests) })
	}
}

// session takes the protocol from the environment and runs the one command.
func (h *sshServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	protocol := ""
	for r := range requests {
		switch r.Type {
		case "env":
			var v struct{ Name, Value string }
			if ssh.Unmarshal(r.Payload, &v) == nil && v.Name == "GIT_PROTOCOL" && !h.s.opt.ProtocolV0 {
				protocol = v.Value
			}
			_ = r.Reply(true, nil)
		case "exec":
			var v struct{ Line string }
			err := ssh.Unmarshal(r.Payload, &v)
			_ = r.Reply(err == nil, nil)
			go ssh.DiscardRequests(requests)
			status := h.exec(channel, v.Line, protocol)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func (h *sshServer) exec(channel ssh.Channel, line, protocol string) uint32 {
	h.s.count(func(c *Counts) { c.SSH++ })
	name, arg, _ := strings.Cut(line, " ")
	path := filepath.Clean("/" + strings.Trim(arg, "' "))
	if name != "git-upload-pack" && (name != "git-receive-pack" || !h.s.opt.Push) {
		_, _ = io.WriteString(channel.Stderr(), "command is not allowed\n")
		return 1
	}
	cmd := exec.Command(h.s.git, strings.TrimPrefix(name, "git-"), filepath.Join(h.s.opt.Dir, path))
	cmd.Env = append(cleanEnv(), "GIT_PROTOCOL="+protocol)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	in, err := cmd.StdinPipe() // not cmd.Stdin: Wait must not wait for a client that sends nothing more
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	}()
	if cmd.Wait() != nil {
		return 128
	}
	return 0
}
