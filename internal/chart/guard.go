package chart

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// apiServersFresh is how long resolved names of API servers are believed.
const apiServersFresh = time.Minute

// guard decides which addresses may be connected to. It is asked after name resolution, so that no name leads around it.
type guard struct {
	allow   []netip.Prefix
	servers []string

	mu       sync.Mutex
	resolved []netip.AddrPort
	at       time.Time
}

// metadataV6 is where a large cloud serves machine credentials over IPv6; it looks like any private address.
const metadataV6 = "fd00:ec2::254"

// control is for net.Dialer.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusal{what: "address " + address, reason: "can't be read", err: err}
	}
	return g.check(ctx, netip.AddrPortFrom(plain(to.Addr()), to.Port()))
}

// plain is an IPv4 address that hides in an IPv6 one (mapped, or for NAT64) as such.
func plain(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

func (g *guard) check(ctx context.Context, to netip.AddrPort) error {
	a := to.Addr()
	if slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return nil
	}
	var is string
	switch {
	case a.IsLoopback():
		is = "is this machine itself"
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.String() == metadataV6:
		is = "is link-local"
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		is = "belongs to no single machine"
	case g.isServer(ctx, to):
		is = "is an API server"
	default:
		return nil
	}
	return &refusal{what: "address " + a.String(), reason: is + ", and the administrator has not allowed it"}
}

// isServer tells whether an address is an API server's. A server without port is refused on all its ports.
func (g *guard) isServer(ctx context.Context, to netip.AddrPort) bool {
	if len(g.servers) == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.at) > apiServersFresh {
		g.resolve(ctx)
	}
	return slices.ContainsFunc(g.resolved, func(s netip.AddrPort) bool {
		return s.Addr() == to.Addr() && (s.Port() == 0 || s.Port() == to.Port())
	})
}

func (g *guard) resolve(ctx context.Context) {
	var resolved []netip.AddrPort
	for _, server := range g.servers {
		host, port := server, 0
		if h, p, err := net.SplitHostPort(server); err == nil {
			host = h
			if n, err := net.DefaultResolver.LookupPort(ctx, "tcp", p); err == nil {
				port = n
			}
		}
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			// Better refuse what it was a moment ago than let everything through.
			return
		}
		for _, a := range addresses {
			resolved = append(resolved, netip.AddrPortFrom(plain(a), uint16(port)))
		}
	}
	g.resolved, g.at = resolved, time.Now()
}
