package webhook

import (
	"net/url"
	"strings"
)

// parseGitLab reads the hooks of projects and groups, and the system hook, which say the kind in the body.
func parseGitLab(r Request) (Event, error) {
	var p struct {
		Kind    string `json:"object_kind"`
		Name    string `json:"event_name"`
		Ref     string `json:"ref"`
		Project struct {
			WebURL        string `json:"web_url"`
			HTTPURL       string `json:"git_http_url"`
			SSHURL        string `json:"git_ssh_url"`
			DefaultBranch string `json:"default_branch"`
		} `json:"project"`
		// Of project_rename and project_transfer.
		Path    string `json:"path_with_namespace"`
		OldPath string `json:"old_path_with_namespace"`
	}
	if err := decode(r.Body, "an event of GitLab", &p); err != nil {
		return Event{}, err
	}
	kind := p.Kind
	if kind == "" {
		kind = p.Name
	}
	switch kind {
	case "push", "tag_push":
		return Event{
			RepoURLs: []string{p.Project.HTTPURL, p.Project.SSHURL, p.Project.WebURL}, Refs: []string{p.Ref}, DefaultBranch: p.Project.DefaultBranch,
		}, nil
	case "project_rename", "project_transfer":
		// The body has no URL; the header has the address of the instance.
		base, err := url.Parse(r.Header.Get("X-Gitlab-Instance"))
		if err != nil || base.Host == "" || p.Path == "" || p.OldPath == "" {
			return Event{Ignored: "a rename without the header X-Gitlab-Instance or without paths"}, nil
		}
		at := func(path string) []string { return []string{base.JoinPath(strings.Split(path, "/")...).String()} }
		return Event{RepoURLs: at(p.Path), Formerly: at(p.OldPath)}, nil
	}
	return Event{Ignored: "event " + clip(kind)}, nil
}
