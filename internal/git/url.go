package git

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// address is a repository URL taken apart.
type address struct {
	// scheme is https, http, ssh or file.
	scheme string
	user   string
	// password is one written into the URL; it goes to the credential helper, never to git's arguments.
	password   string
	host, port string
	path       string
	// remote is what git is told, without password.
	remote string
}

var defaultPorts = map[string]string{"https": "443", "http": "80", "ssh": "22"}

// key identifies the repository whatever the way to it: host in lower case, port unless it is the scheme's own, path
// without .git and slashes at its ends.
func (a address) key() string {
	p := strings.Trim(path.Clean("/"+a.path), "/")
	p = strings.TrimSuffix(p, ".git")
	if a.scheme == "file" {
		return "file:///" + strings.TrimSuffix(p, "/")
	}
	return a.hostPort() + "/" + strings.Trim(p, "/")
}

// hostPort is the host as URLs write it.
func (a address) hostPort() string {
	host := a.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.port != "" {
		host += ":" + a.port
	}
	return host
}

// Normalize gives the key of the repository behind a URL: https, ssh and user@host:path forms, with and without .git, a
// slash at the end, a default port, a user, or capital letters in the host give the same key. The path keeps its letter
// case. What is no repository URL is returned trimmed, so that it equals itself only.
func Normalize(raw string) string {
	a, err := parseAddress(raw)
	if err != nil {
		return strings.TrimSpace(raw)
	}
	return a.key()
}

// CheckURL tells why a URL can not be used as a repository: an error of kind ErrRefused, or nil. Whether a local path
// is allowed is up to the store.
func CheckURL(raw string) error {
	_, err := parseAddress(raw)
	return err
}

func refused(raw, why string) error {
	return &Error{Repo: hideUserinfo(strings.TrimSpace(raw)), Kind: ErrRefused, What: why}
}

func parseAddress(raw string) (address, error) {
	s := strings.TrimSpace(raw)
	switch {
	case s == "":
		return address{}, &Error{Repo: `""`, Kind: ErrRefused, What: "has no URL"}
	case strings.HasPrefix(s, "-"):
		return address{}, refused(s, "starts with a dash, which git would take for an option")
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' }):
		return address{}, refused(fmt.Sprintf("%q", s), "contains a space, a backslash or a control character")
	}
	if scheme, _, ok := strings.Cut(s, "://"); ok && !strings.ContainsAny(scheme, ":/@") {
		return parseURL(s, strings.ToLower(scheme))
	}
	if name, _, ok := strings.Cut(s, "::"); ok && !strings.ContainsAny(name, "/@[") {
		return address{}, refused(s, "names a transport program ("+name+"::), which is not allowed")
	}
	if strings.HasPrefix(s, "/") {
		return address{scheme: "file", path: path.Clean(s), remote: path.Clean(s)}, nil
	}
	return parseSCP(s)
}

func parseURL(s, scheme string) (address, error) {
	if scheme == "file" {
		p := s[len("file://"):]
		if !strings.HasPrefix(p, "/") {
			return address{}, refused(s, "names a host; a file URL is file:///path")
		}
		return address{scheme: "file", path: path.Clean(p), remote: path.Clean(p)}, nil
	}
	if _, ok := defaultPorts[scheme]; !ok {
		return address{}, refused(s, "has the scheme "+scheme+"; https, http, ssh and user@host:path can be used")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return address{}, refused(s, "is not a valid URL")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return address{}, refused(s, "has a ? or # part; the revision belongs into targetRevision")
	}
	a := address{scheme: scheme, host: strings.ToLower(u.Hostname()), port: u.Port(), path: u.Path}
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	if a.port == defaultPorts[scheme] {
		a.port = ""
	}
	if scheme == "ssh" && a.password != "" {
		return address{}, refused(s, "has a password, which ssh does not take; configure a private key")
	}
	if scheme != "ssh" {
		// The helper compares the host that git asks for with ours, so git gets it in the form that we hold.
		u.User, u.Host = nil, a.hostPort()
	}
	u.Scheme = scheme
	a.remote = u.String()
	return a, a.check(s)
}

// parseSCP reads [user@]host:path.
func parseSCP(s string) (address, error) {
	user, rest := "", s
	if at := strings.IndexByte(s, '@'); at >= 0 && !strings.ContainsAny(s[:at], "/:") {
		user, rest = s[:at], s[at+1:]
	}
	var host, p string
	var ok bool
	if strings.HasPrefix(rest, "[") {
		host, p, ok = strings.Cut(rest[1:], "]:")
	} else {
		host, p, ok = strings.Cut(rest, ":")
	}
	if !ok || strings.Contains(host, "/") {
		return address{}, refused(s, "is not a repository URL; use https://host/path or user@host:path")
	}
	a := address{scheme: "ssh", user: user, host: strings.ToLower(host), path: p, remote: s}
	return a, a.check(s)
}

func (a address) check(raw string) error {
	switch {
	case a.host == "":
		return refused(raw, "names no host")
	case strings.HasPrefix(a.host, "-") || strings.HasPrefix(a.user, "-"):
		return refused(raw, "has a host or user that starts with a dash")
	case strings.Trim(a.path, "/") == "":
		return refused(raw, "names no repository on "+a.host)
	case strings.HasPrefix(a.path, "-"):
		return refused(raw, "has a path that starts with a dash")
	}
	return nil
}

// locate parses the URL and holds a local path against the local roots, links resolved.
func (s *Store) locate(raw string) (address, error) {
	a, err := parseAddress(raw)
	if err != nil || a.scheme != "file" {
		return a, err
	}
	real, err := filepath.EvalSymlinks(a.path)
	missing := err != nil
	if missing {
		real = a.path
	}
	for _, root := range s.opt.LocalRoots {
		if r, err := filepath.EvalSymlinks(root); err == nil {
			root = r
		}
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			if missing {
				return a, &Error{Repo: raw, Kind: ErrNotFound, What: "there is no such folder"}
			}
			a.remote = real
			return a, nil
		}
	}
	return a, refused(raw, "is a local path, which is allowed only below a folder given by --local-repositories")
}
