package git_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-cd/lockstep/internal/git"
)

func TestNormalize(t *testing.T) {
	same := []string{
		"https://git.example.org/Team/app", "https://git.example.org/Team/app.git", "https://git.example.org/Team/app/", "https://GIT.example.org:443/Team/app.git/",
		"https://user:secret@git.example.org/Team/app", "http://git.example.org/Team/app", "ssh://git@git.example.org/Team/app.git",
		"ssh://git.example.org:22/Team/app", "git@git.example.org:Team/app.git", "git.example.org:/Team/app", "  https://git.example.org//Team/app  ",
		"HTTPS://git.example.org/Team/app",
	}
	for _, u := range same {
		if got := git.Normalize(u); got != "git.example.org/Team/app" {
			t.Errorf("Normalize(%q) = %q", u, got)
		}
	}
	for u, want := range map[string]string{
		"https://git.example.org/team/app":      "git.example.org/team/app",
		"https://git.example.org:8443/Team/app": "git.example.org:8443/Team/app",
		"file:///srv/git/app.git/":              "file:///srv/git/app",
		"/srv/git/../git/app":                   "file:///srv/git/app",
		"git@[2001:db8::1]:x/y":                 "[2001:db8::1]/x/y",
		"not a url":                             "not a url",
		"":                                      "",
	} {
		if got := git.Normalize(u); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", u, got, want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for u, want := range map[string]string{
		"":                               "has no URL",
		"ext::sh -c id":                  "contains a space",
		"ext::sh":                        "names a transport program (ext::)",
		"--upload-pack=id":               "starts with a dash",
		"ssh://-oProxyCommand=id/x":      "starts with a dash",
		"ssh://-oProxyCommand=id@host/x": "starts with a dash",
		"-oProxyCommand=id@host:x":       "starts with a dash",
		"git@-oProxyCommand=id:x":        "starts with a dash",
		"host:-x":                        "path that starts with a dash",
		"git://host/x":                   "has the scheme git",
		"ftp://host/x":                   "has the scheme ftp",
		"https:///x":                     "names no host",
		"https://host":                   "names no repository on host",
		"https://host/x?ref=main":        "has a ? or # part",
		"https://host/x#main":            "has a ? or # part",
		"https://host/x\nhttps://host/y": "control character",
		"relative/path":                  "is not a repository URL",
		"file://host/x":                  "names a host",
		"ssh://git:secret@host/x":        "has a password",
		`https://host\@evil/x`:           "backslash",
	} {
		err := git.CheckURL(u)
		if !errors.Is(err, git.ErrRefused) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("CheckURL(%q) = %v, want %q", u, err, want)
		}
	}
	for _, u := range []string{"https://host/x", "http://host:80/x/y.git", "git@host:x", "ssh://host:2222/x", "host:x/y", "/srv/x", "file:///srv/x"} {
		if err := git.CheckURL(u); err != nil {
			t.Errorf("CheckURL(%q) = %v", u, err)
		}
	}
}
