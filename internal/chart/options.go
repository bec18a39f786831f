package chart

import (
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"time"
)

// Options of a Store.
type Options struct {
	// Dir is the folder of the cache, which the store has for itself.
	Dir string
	// Policy is asked for every URL before it is requested, redirects too; its error is the answer. The context is that of
	// the call, so that it can carry the project. Nil allows every URL.
	Policy func(ctx context.Context, u *url.URL) error
	// AllowPrivate are addresses that may be reached although they are loopback, link-local or an API server's.
	AllowPrivate []netip.Prefix
	// APIServers are hosts, with or without port, that may not be reached.
	APIServers []string
	// MaxBytes bounds the cache on disk; what was not used for longest goes first. Default 1 GiB.
	MaxBytes int64
	// Timeout bounds one call. Default 2 minutes.
	Timeout time.Duration
	// Log gets what goes wrong without being an error of a call, such as a damaged file of the cache.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Policy == nil {
		o.Policy = func(context.Context, *url.URL) error { return nil }
	}
	return o
}

// Bounds of what a repository may send.
const (
	// MaxIndex is the size of an index.yaml in bytes.
	MaxIndex = 256 << 20
	// MaxArchive is the size of a packed chart or artifact.
	MaxArchive = 128 << 20
	// MaxUnpacked is the size of an unpacked chart or artifact.
	MaxUnpacked = 256 << 20
	// MaxUnpackedFiles is the number of files in it.
	MaxUnpackedFiles = 50000
	// MaxFile is the size of a single file behind a URL.
	MaxFile = 10 << 20
	// maxManifest is the size of a manifest in a registry, the one registries themselves have.
	maxManifest = 4 << 20
)

// Repo is a Helm repository (http, https) or an OCI registry with a path (oci) and how to get in.
type Repo struct {
	URL string
	Credentials
}

// Credentials of a repository. The zero value asks nobody for anything.
type Credentials struct {
	Username, Password string
	// BearerToken is sent instead of user and password.
	BearerToken string
	// CA are certificates in PEM that are trusted beside those of the system.
	CA []byte
	// ClientCert and ClientKey in PEM identify us.
	ClientCert, ClientKey []byte
	// Insecure does not check the server's certificate.
	Insecure bool
	// PlainHTTP speaks http to an OCI registry.
	PlainHTTP bool
	// PassCredentials sends user, password and token to other hosts that an index names, too.
	PassCredentials bool
	// Proxy is the URL of a proxy; empty means none, whatever the environment of the process says.
	Proxy string
	// NoProxy are the hosts that are reached without it, separated by commas.
	NoProxy string
}

func (c Credentials) none() bool { return c.Username == "" && c.Password == "" && c.BearerToken == "" }
