// Package egress is the proxy through which the API server reaches into the cluster:
// kubelets, webhooks and aggregated APIs. It answers HTTP CONNECT on a listener and
// maps the cluster's invented addresses to this machine. It depends on no other
// package of ours.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// dialTimeout bounds one connection attempt to a local process.
const dialTimeout = 5 * time.Second

// Route decides where a connection to an address of the cluster goes.
type Route func(host netip.Addr, port string) (network, address string, err error)

// Proxy serves CONNECT requests.
type Proxy struct {
	route Route
	log   *slog.Logger

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	shut  bool
}

// New makes a proxy that sends connections where route says.
func New(route Route, log *slog.Logger) *Proxy {
	return &Proxy{route: route, log: log, conns: map[net.Conn]struct{}{}}
}

// Serve accepts connections until ctx ends; then it closes all of them, waits for
// their goroutines and returns nil.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		p.closeAll()
	})
	defer stop()
	defer p.wg.Wait()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("egress: accept: %w", err)
		}
		if !p.track(conn) {
			_ = conn.Close()
			continue
		}
		p.wg.Go(func() {
			defer p.forget(conn)
			if err := p.handle(ctx, conn); err != nil {
				p.log.Info("egress connection failed", "error", err)
			}
		})
	}
}

func (p *Proxy) handle(ctx context.Context, client net.Conn) error {
	in := bufio.NewReader(client)
	req, err := http.ReadRequest(in)
	if err != nil {
		return fmt.Errorf("egress: read request: %w", err)
	}
	if req.Method != http.MethodConnect {
		return refuse(client, http.StatusMethodNotAllowed, fmt.Errorf("egress: method %s", req.Method))
	}
	server, err := p.dial(ctx, req.Host)
	if err != nil {
		return refuse(client, http.StatusBadGateway, err)
	}
	if !p.track(server) {
		return server.Close()
	}
	defer p.forget(server)
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return fmt.Errorf("egress: %s: answer: %w", req.Host, err)
	}
	pipe(client, in, server)
	return nil
}

func (p *Proxy) dial(ctx context.Context, target string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("egress: %q: %w", target, err)
	}
	// A webhook or an APIService may name localhost by its URL.
	if host == "localhost" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return nil, fmt.Errorf("egress: %q: the cluster has no DNS, use an address or a service: %w", target, err)
	}
	network, address, err := p.route(addr, port)
	if err != nil {
		return nil, fmt.Errorf("egress: %s: %w", target, err)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, network, address)
}

// pipe copies both ways and returns when both directions have ended.
func pipe(client net.Conn, in io.Reader, server net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, in)
		closeWrite(server)
	}()
	_, _ = io.Copy(client, server)
	closeWrite(client)
	// The server has hung up; whatever the client still sends has no reader.
	_ = client.SetReadDeadline(time.Now())
	<-done
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

func refuse(client io.Writer, code int, cause error) error {
	text := cause.Error()
	_, err := fmt.Fprintf(client, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\nContent-Type: text/plain\r\n\r\n%s",
		code, http.StatusText(code), len(text), text)
	return errors.Join(cause, err)
}

func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	_ = c.Close()
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	for c := range p.conns {
		_ = c.Close()
	}
}
