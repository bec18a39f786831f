package webhook

import (
	"bytes"
	"net/url"
	"strings"
)

// isAzure knows Azure DevOps by its header, or by the publisher where a proxy drops headers.
func isAzure(r Request) bool {
	if r.Header.Get("X-Vss-Activityid") != "" {
		return true
	}
	var p struct {
		Publisher string `json:"publisherId"`
	}
	return bytes.Contains(r.Body, []byte(`"publisherId"`)) && sniff(r, &p) && p.Publisher == "tfs"
}

func parseAzure(r Request) (Event, error) {
	var p struct {
		Kind     string `json:"eventType"`
		Resource struct {
			Updates []struct {
				Name string `json:"name"`
			} `json:"refUpdates"`
			Repository struct {
				RemoteURL     string `json:"remoteUrl"`
				DefaultBranch string `json:"defaultBranch"`
			} `json:"repository"`
		} `json:"resource"`
	}
	if err := decode(r.Body, "an event of Azure DevOps", &p); err != nil {
		return Event{}, err
	}
	if p.Kind != "git.push" {
		return Event{Ignored: "event " + clip(p.Kind)}, nil
	}
	repo := p.Resource.Repository
	e := Event{RepoURLs: azureForms(repo.RemoteURL), DefaultBranch: strings.TrimPrefix(repo.DefaultBranch, "refs/heads/")}
	for _, u := range p.Resource.Updates {
		e.Refs = append(e.Refs, u.Name)
	}
	return e, nil
}

// azureForms are all forms that one repository of the service has: https with either host, with the collection or without,
// the short one of a repository that is called like its project, and ssh. Of a server of one's own it is the given one.
func azureForms(remote string) []string {
	u, err := url.Parse(remote)
	if err != nil {
		return []string{remote}
	}
	u.User = nil
	list := []string{u.String()}
	before, repo, ok := strings.Cut(strings.Trim(u.Path, "/"), "/_git/")
	if !ok {
		before, repo = "", strings.TrimPrefix(strings.Trim(u.Path, "/"), "_git/")
	}
	parts := strings.Split(before, "/")
	var organization string
	switch host := strings.ToLower(u.Hostname()); {
	case host == "dev.azure.com":
		organization, parts = parts[0], parts[1:]
	case strings.HasSuffix(host, ".visualstudio.com"):
		organization = strings.TrimSuffix(host, ".visualstudio.com")
		if len(parts) > 0 && strings.EqualFold(parts[0], "DefaultCollection") {
			parts = parts[1:]
		}
	default:
		return list
	}
	project := repo
	if len(parts) > 0 && parts[0] != "" {
		project = parts[0]
	}
	for _, old := range []string{"", "DefaultCollection/"} {
		list = append(list, "https://"+organization+".visualstudio.com/"+old+project+"/_git/"+repo)
	}
	list = append(list,
		"https://dev.azure.com/"+organization+"/"+project+"/_git/"+repo,
		"git@ssh.dev.azure.com:v3/"+organization+"/"+project+"/"+repo,
		organization+"@vs-ssh.visualstudio.com:v3/"+organization+"/"+project+"/"+repo)
	if project == repo {
		list = append(list, "https://dev.azure.com/"+organization+"/_git/"+repo, "https://"+organization+".visualstudio.com/_git/"+repo)
	}
	return list
}
