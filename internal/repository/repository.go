// Package repository owns what is known of repositories from Secrets labelled argocd.argoproj.io/secret-type: repository
// and repo-creds (the contract's §3.1). Values of a Secret never appear in its errors.
//
// It imports values and the credential types of git and chart; it does no I/O.
package repository

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-cd/lockstep/internal/git"
	"github.com/lockstep-cd/lockstep/internal/signature"
)

// TypeLabel tells what a Secret holds.
const TypeLabel = "argocd.argoproj.io/secret-type"

// The values of TypeLabel that this package reads.
const (
	TypeRepository = "repository"
	TypeTemplate   = "repo-creds"
)

// Entry is one repository, or a template for all repositories whose URL starts with URL.
type Entry struct {
	URL string
	// Kind is git (default), helm or oci.
	Kind     string
	Name     string
	Project  string
	Template bool

	Username, Password string
	BearerToken        string
	SSHPrivateKey      string
	Insecure           bool
	IgnoreHostKey      bool
	ForceBasicAuth     bool
	PlainHTTP          bool
	ClientCert         string
	ClientKey          string
	Proxy, NoProxy     string
	// LFS exchanges pointers of Git LFS for what they stand for; NoSubmodules leaves submodules out.
	LFS, NoSubmodules bool
	// Depth bounds the history that is fetched; 0 fetches all of it.
	Depth int
	Exchanged
}

func (e Entry) hasCredentials() bool {
	return e.Username != "" || e.Password != "" || e.BearerToken != "" || e.SSHPrivateKey != "" || e.ClientCert != "" || e.Any()
}

// FromSecret reads an entry; false when the Secret is of another type or names no URL.
func FromSecret(s *corev1.Secret) (Entry, bool) {
	kind := s.Labels[TypeLabel]
	text := func(key string) string { return strings.TrimSpace(string(s.Data[key])) }
	truth := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(text(k), "true") })
	}
	if kind != TypeRepository && kind != TypeTemplate || text("url") == "" {
		return Entry{}, false
	}
	e := Entry{
		URL: text("url"), Kind: text("type"), Name: text("name"), Project: text("project"), Template: kind == TypeTemplate,
		Username: text("username"), Password: string(s.Data["password"]), BearerToken: text("bearerToken"),
		SSHPrivateKey: string(s.Data["sshPrivateKey"]), Insecure: truth("insecure", "insecureIgnoreHostKey"),
		IgnoreHostKey: truth("insecureIgnoreHostKey", "insecure"), ForceBasicAuth: truth("forceHttpBasicAuth"),
		PlainHTTP: truth("insecureOCIForceHttp"), ClientCert: string(s.Data["tlsClientCertData"]),
		ClientKey: string(s.Data["tlsClientCertKey"]), Proxy: text("proxy"), NoProxy: text("noProxy"),
		LFS: truth("enableLfs"), NoSubmodules: strings.EqualFold(text("enableSubmodules"), "false"), Exchanged: exchangedFrom(s),
	}
	if n, err := strconv.Atoi(text("depth")); err == nil && n > 0 {
		e.Depth = n
	}
	if e.Kind == "" {
		e.Kind = "git"
	}
	if truth("enableOCI") {
		e.Kind = "oci"
	}
	return e, true
}

// Set holds the entries of all Secrets, by the Secret's name. It is safe for use by several goroutines.
type Set struct {
	mu        sync.RWMutex
	bySecret  map[string]Entry
	hosts     string
	authority map[string]string
	ring      *signature.Ring
}

// NewSet makes an empty set.
func NewSet() *Set { return &Set{bySecret: map[string]Entry{}, ring: signature.NewRing(nil)} }

// Put takes in what a Secret says and tells whether anything changed. Nil data removes it.
func (s *Set) Put(secret string, e *Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.bySecret[secret]
	if e == nil {
		delete(s.bySecret, secret)
		return had
	}
	s.bySecret[secret] = *e
	return !had || old != *e
}

// KnownHosts replaces the lines of argocd-ssh-known-hosts-cm.
func (s *Set) KnownHosts(lines string) {
	s.mu.Lock()
	s.hosts = lines
	s.mu.Unlock()
}

// Authorities replaces the certificates of argocd-tls-certs-cm, PEM by host name.
func (s *Set) Authorities(byHost map[string]string) {
	s.mu.Lock()
	s.authority = byHost
	s.mu.Unlock()
}

// SigningKeys replaces the keys of argocd-gpg-keys-cm, by name.
func (s *Set) SigningKeys(byName map[string]string) {
	ring := signature.NewRing(byName)
	s.mu.Lock()
	s.ring = ring
	s.mu.Unlock()
}

// Ring are the keys that commits may be signed with.
func (s *Set) Ring() *signature.Ring {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ring
}

// Find returns what is known for a repository of a project: the project's own entry, then a common one, and where that
// has no credentials those of the template with the longest matching prefix. The answer's URL is url.
func (s *Set) Find(url, project string) Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	key := git.Normalize(url)
	found, _ := s.best(project, func(e Entry) int {
		if e.Template || git.Normalize(e.URL) != key {
			return 0
		}
		return 1
	})
	if !found.hasCredentials() {
		found = s.fromTemplate(found, url, project)
	}
	found.URL = url
	return found
}

// best is the entry for project that score gives most; 0 leaves it out. Among equals the project's own comes first, then the
// order of the Secrets' names decides, so that the answer is the same every time.
func (s *Set) best(project string, score func(Entry) int) (best Entry, ok bool) {
	most := 0
	for _, secret := range slices.Sorted(maps.Keys(s.bySecret)) {
		e := s.bySecret[secret]
		if e.Project != "" && e.Project != project {
			continue
		}
		n := score(e)
		if n > most || n > 0 && n == most && e.Project != "" && best.Project == "" {
			best, most, ok = e, n, true
		}
	}
	return best, ok
}

// fromTemplate gives an entry without credentials those of the template with the longest matching prefix; what the entry
// itself says stays.
func (s *Set) fromTemplate(e Entry, url, project string) Entry {
	t, ok := s.best(project, func(t Entry) int {
		if !t.Template || !hasPrefix(url, t.URL) {
			return 0
		}
		return len(t.URL)
	})
	if !ok {
		return e
	}
	t.Template, t.Kind, t.Name, t.Project = false, pick(e.Kind, t.Kind), e.Name, pick(e.Project, t.Project)
	t.Proxy, t.NoProxy = pick(e.Proxy, t.Proxy), pick(e.NoProxy, t.NoProxy)
	t.Insecure, t.IgnoreHostKey = t.Insecure || e.Insecure, t.IgnoreHostKey || e.IgnoreHostKey
	t.ForceBasicAuth, t.PlainHTTP = t.ForceBasicAuth || e.ForceBasicAuth, t.PlainHTTP || e.PlainHTTP
	t.LFS, t.NoSubmodules, t.Depth = t.LFS || e.LFS, t.NoSubmodules || e.NoSubmodules, max(t.Depth, e.Depth)
	return t
}

func pick(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// hasPrefix matches whole path elements, so that credentials for …/team do not go to …/team-other, nor those of a host to
// another one.
func hasPrefix(url, prefix string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(url), strings.ToLower(prefix))
	switch {
	case !ok:
		return false
	case rest == "", strings.HasSuffix(prefix, "/"), strings.HasSuffix(prefix, ":"), rest[0] == '/':
		return true
	}
	// The .git of a repository belongs to its name, that of a host makes it another one.
	_, place, ok := strings.Cut(prefix, "://")
	if !ok {
		place = strings.Replace(prefix, ":", "/", 1)
	}
	_, path, _ := strings.Cut(place, "/")
	return rest == ".git" && path != ""
}

// Named is the entry of a Helm repository with that name, as Chart.yaml says @name.
func (s *Set) Named(name, project string) (Entry, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.best(project, func(e Entry) int {
		if e.Template || e.Name != name || e.Kind == "git" {
			return 0
		}
		return 1
	})
}

// Git is the entry as the git link wants it.
func (s *Set) Git(e Entry) git.Repo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return git.Repo{URL: e.URL, Depth: e.Depth, LFS: e.LFS, Credentials: git.Credentials{
		Username: e.Username, Password: e.Password, BearerToken: e.BearerToken, ForceBasicAuth: e.ForceBasicAuth,
		SSHPrivateKey: e.SSHPrivateKey, KnownHosts: s.hosts, InsecureIgnoreHostKey: e.IgnoreHostKey,
		TLSClientCert: e.ClientCert, TLSClientKey: e.ClientKey, CA: s.authority[hostOf(e.URL)], Insecure: e.Insecure,
		Proxy: e.Proxy, NoProxy: e.NoProxy,
	}}
}

// CA is the private authority for the host of url, PEM; empty where there is none.
func (s *Set) CA(url string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.authority[hostOf(url)]
}

func hostOf(url string) string {
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		rest = url
	}
	rest, _, _ = strings.Cut(rest, "/")
	rest = strings.ToLower(rest[strings.LastIndex(rest, "@")+1:])
	if v6, _, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok {
		return v6
	}
	host, _, _ := strings.Cut(rest, ":")
	return host
}
