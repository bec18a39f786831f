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
	"path/filepath"
	"strings"
	"testing"
)

// serve starts an upper-casing server behind the proxy at 192.0.2.1:80 and returns a
// function that connects through the proxy.
func serve(t *testing.T) func(target string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	go func() {
		for {
			conn, err := backend.Accept()
			if err != nil {
				return
			}
			// The whole input first: the answer proves that the end of input came through.
			data, _ := io.ReadAll(conn)
			_, _ = io.WriteString(conn, strings.ToUpper(string(data)))
			_ = conn.Close()
		}
	}()
	route := func(host netip.Addr, port string) (string, string, error) {
		if host.String() == "192.0.2.1" && port == "80" {
			return "tcp", backend.Addr().String(), nil
		}
		return "", "", errors.New("no route")
	}
	sock := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(route, slog.New(slog.DiscardHandler)).Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func(target string) (net.Conn, *bufio.Reader, *http.Response) {
		t.Helper()
		conn, err := net.Dial("unix", sock)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Fatal(err)
		}
		return conn, in, resp
	}
}

func TestConnect(t *testing.T) {
	connect := serve(t)
	conn, in, resp := connect("192.0.2.1:80")
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || string(got) != "HELLO" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	connect := serve(t)
	for _, target := range []string{"10.244.0.7:80", "192.0.2.1:81", "name.example:80", "nonsense"} {
		if _, _, resp := connect(target); resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: %s", target, resp.Status)
		}
	}
}

// TestStopClosesConnections: Serve returns though a connection is open.
func TestStopClosesConnections(t *testing.T) {
	connect := serve(t)
	if _, _, resp := connect("192.0.2.1:80"); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	// The clean-up of serve waits for the end of Serve.
}
