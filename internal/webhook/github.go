package webhook

import (
	"net/url"
	"strings"
)

// repository is what GitHub, Gitea, Forgejo and Gogs tell of one.
type repository struct {
	CloneURL      string `json:"clone_url"`
	SSHURL        string `json:"ssh_url"`
	HTMLURL       string `json:"html_url"`
	Name          string `json:"name"`
	DefaultBranch string `json:"default_branch"`
	MasterBranch  string `json:"master_branch"`
}

func (r repository) urls() []string { return []string{r.CloneURL, r.SSHURL, r.HTMLURL} }

func parseGitHub(r Request) (Event, error) {
	kind := r.Header.Get("X-GitHub-Event")
	if kind == "" {
		kind = r.Header.Get("X-Gogs-Event")
	}
	payload, err := payloadOf(r.Header, r.Body)
	if err != nil {
		return Event{}, err
	}
	switch kind {
	case "push":
		return parsePush(payload)
	case "repository":
		return parseRenamed(payload)
	case "package", "registry_package":
		return parsePackage(payload)
	case "ping":
		return Event{Ignored: "ping"}, nil
	}
	return Event{Ignored: "event " + clip(kind)}, nil
}

func parsePush(body []byte) (Event, error) {
	var p struct {
		Ref        string     `json:"ref"`
		Repository repository `json:"repository"`
	}
	if err := decode(body, "a push event", &p); err != nil {
		return Event{}, err
	}
	e := Event{RepoURLs: p.Repository.urls(), Refs: []string{p.Ref}, DefaultBranch: p.Repository.DefaultBranch}
	if e.DefaultBranch == "" {
		e.DefaultBranch = p.Repository.MasterBranch
	}
	return e, nil
}

// parseRenamed reads the change of a repository's name; applications go on naming the old one, which forges redirect.
func parseRenamed(body []byte) (Event, error) {
	var p struct {
		Action     string     `json:"action"`
		Repository repository `json:"repository"`
		Changes    struct {
			Repository struct {
				Name struct {
					From string `json:"from"`
				} `json:"name"`
			} `json:"repository"`
		} `json:"changes"`
	}
	if err := decode(body, "a repository event", &p); err != nil {
		return Event{}, err
	}
	from := p.Changes.Repository.Name.From
	if p.Action != "renamed" || from == "" || strings.Contains(from, "/") {
		return Event{Ignored: "event repository " + clip(p.Action)}, nil
	}
	e := Event{RepoURLs: p.Repository.urls()}
	for _, u := range e.RepoURLs {
		if i := strings.LastIndexByte(u, '/'); i >= 0 {
			e.Formerly = append(e.Formerly, u[:i+1]+from)
		}
	}
	return e, nil
}

// parsePackage reads an image or artifact that was pushed to GHCR, or to the registry of a Gitea or Forgejo.
func parsePackage(body []byte) (Event, error) {
	type described struct {
		// Of GitHub.
		PackageType string `json:"package_type"`
		Version     struct {
			URL string `json:"package_url"`
		} `json:"package_version"`
		// Of Gitea.
		Type    string `json:"type"`
		Name    string `json:"name"`
		HTMLURL string `json:"html_url"`
		Owner   struct {
			Login string `json:"login"`
		} `json:"owner"`
	}
	var p struct {
		Package         described `json:"package"`
		RegistryPackage described `json:"registry_package"`
	}
	if err := decode(body, "a package event", &p); err != nil {
		return Event{}, err
	}
	d := p.Package
	if d.PackageType == "" && d.Type == "" {
		d = p.RegistryPackage
	}
	switch {
	case strings.EqualFold(d.PackageType, "container") && d.Version.URL != "":
		return Event{Artifacts: []string{untagged(d.Version.URL)}}, nil
	case d.Type == "container":
		if u, err := url.Parse(d.HTMLURL); err == nil && u.Host != "" && d.Name != "" {
			return Event{Artifacts: []string{u.Host + "/" + d.Owner.Login + "/" + d.Name}}, nil
		}
	}
	return Event{Ignored: "a package that is no artifact of a registry"}, nil
}
