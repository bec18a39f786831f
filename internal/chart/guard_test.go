package chart_test

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-cd/lockstep/internal/chart"
	"github.com/lockstep-cd/lockstep/test/registry"
)

// TestAddresses has addresses that must not be reached, under their own and other names.
func TestAddresses(t *testing.T) {
	h := helmRepo(t, registry.Options{})
	_, port, _ := strings.Cut(h.Host(), ":")
	s := store(t, func(o *chart.Options) { o.AllowPrivate = nil; o.APIServers = []string{"192.0.2.7:6443", "192.0.2.8"} })
	for address, want := range map[string]string{
		"127.0.0.1:" + port:          "address 127.0.0.1 is this machine itself, and the administrator has not allowed it",
		"localhost:" + port:          "is this machine itself",
		"[::ffff:127.0.0.1]:" + port: "address 127.0.0.1 is this machine itself",
		"169.254.169.254":            "address 169.254.169.254 is link-local",
		"[fe80::1]":                  "address fe80::1 is link-local",
		"[fd00:ec2::254]":            "address fd00:ec2::254 is link-local",
		"[64:ff9b::a9fe:a9fe]":       "address 169.254.169.254 is link-local",
		"0.0.0.0:" + port:            "address 0.0.0.0 belongs to no single machine",
		"192.0.2.7:6443":             "address 192.0.2.7 is an API server",
		"192.0.2.8:443":              "address 192.0.2.8 is an API server",
	} {
		_, err := s.HTTPFile(context.Background(), chart.Repo{URL: "http://" + address + "/x"})
		if !errors.Is(err, chart.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
		_, err = s.Versions(context.Background(), chart.Repo{URL: "oci://" + address + "/x", Credentials: chart.Credentials{PlainHTTP: true}}, "y")
		if !errors.Is(err, chart.ErrRefused) && !errors.Is(err, chart.ErrInvalid) {
			t.Errorf("oci://%s: %v", address, err)
		}
	}
}

// TestRedirectToAddress is a server that is allowed and redirects to one that is not.
func TestRedirectToAddress(t *testing.T) {
	h := helmRepo(t, registry.Options{})
	h.Redirect("x", "http://169.254.169.254/latest/meta-data")
	h.Redirect("file", "file:///etc/passwd")
	h.Redirect("loop", h.URL()+"/loop")
	s := store(t, nil)
	for path, want := range map[string]string{
		"x":    "address 169.254.169.254 is link-local, and the administrator has not allowed it",
		"file": `scheme "file" is none of http and https`,
		"loop": "redirects more than 10 times",
	} {
		_, err := s.HTTPFile(context.Background(), chart.Repo{URL: h.URL() + "/" + path})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestPolicy(t *testing.T) {
	h := helmRepo(t, registry.Options{}, files("web", "1.0.0"))
	other := helmRepo(t, registry.Options{})
	h.Redirect("away", other.URL()+"/x")
	s := store(t, func(o *chart.Options) {
		o.Policy = func(_ context.Context, u *url.URL) error {
			if u.Host == other.Host() {
				return errors.New("project shop does not list it")
			}
			return nil
		}
	})
	if _, err := s.Versions(context.Background(), chart.Repo{URL: h.URL()}, "web"); err != nil {
		t.Error(err)
	}
	_, err := s.HTTPFile(context.Background(), chart.Repo{URL: h.URL() + "/away"})
	want := "repository " + h.URL() + "/away: " + other.URL() + "/x is not allowed: project shop does not list it"
	if !errors.Is(err, chart.ErrRefused) || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if n := other.Requests("GET /x"); n != 0 {
		t.Errorf("%d requests went out all the same", n)
	}
}

func TestRedirectLeavesHTTPS(t *testing.T) {
	plain := helmRepo(t, registry.Options{})
	plain.Put("x", []byte("x"))
	h := helmRepo(t, registry.Options{TLS: true})
	h.Redirect("index.yaml", plain.URL()+"/x")
	_, err := store(t, nil).Versions(context.Background(), chart.Repo{URL: h.URL(), Credentials: chart.Credentials{CA: h.CA()}}, "web")
	if !errors.Is(err, chart.ErrRefused) || !strings.HasSuffix(err.Error(), "leaves https") {
		t.Errorf("%v", err)
	}
}

func TestTimeout(t *testing.T) {
	h := helmRepo(t, registry.Options{})
	s := store(t, func(o *chart.Options) { o.Timeout = time.Nanosecond })
	_, err := s.HTTPFile(context.Background(), chart.Repo{URL: h.URL() + "/x"})
	if !errors.Is(err, chart.ErrUnreachable) || !strings.HasSuffix(err.Error(), "did not answer in time") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = store(t, nil).HTTPFile(ctx, chart.Repo{URL: h.URL() + "/x"})
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), "the request was given up") {
		t.Errorf("%v", err)
	}
}

func TestProxy(t *testing.T) {
	// The proxy is a server that answers for any host.
	proxy := helmRepo(t, registry.Options{}, files("web", "1.0.0"))
	repo := chart.Repo{URL: "http://charts.invalid", Credentials: chart.Credentials{Proxy: proxy.URL()}}
	f, _, err := store(t, nil).Pull(context.Background(), repo, "web", "1.0.0")
	if err != nil || content(t, f, "templates/a.yaml") != "of web 1.0.0" {
		t.Errorf("%v", err)
	}
	s := store(t, func(o *chart.Options) { o.AllowPrivate = []netip.Prefix{} })
	if _, err := s.Versions(context.Background(), repo, "web"); !errors.Is(err, chart.ErrRefused) {
		t.Errorf("a proxy on this machine: %v", err)
	}
}
