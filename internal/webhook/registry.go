package webhook

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
)

// notification is what registries send, each of them a part of it.
type notification struct {
	// Of Harbor, in its own format and, below data, as a CloudEvent.
	Type      string      `json:"type"`
	EventData *harborPush `json:"event_data"`
	Data      *harborPush `json:"data"`
	// Of CNCF Distribution and those who send the same.
	Events []distribution `json:"events"`
	// Of Azure Container Registry, which sends a single one.
	distribution
	// Of Quay.
	DockerURL string `json:"docker_url"`
	// Of Docker Hub.
	PushData *struct{} `json:"push_data"`
	// Repository is an object at Docker Hub and a name at Quay.
	Repository json.RawMessage `json:"repository"`
}

type harborPush struct {
	Resources []struct {
		URL string `json:"resource_url"`
	} `json:"resources"`
}

type distribution struct {
	Action string `json:"action"`
	Target struct {
		Repository string `json:"repository"`
		URL        string `json:"url"`
	} `json:"target"`
	Request struct {
		Host string `json:"host"`
	} `json:"request"`
}

func isHarbor(r Request) bool {
	return bytes.Contains(r.Body, []byte(`"event_data"`)) || strings.HasPrefix(r.Header.Get("Ce-Type"), "harbor.") || bytes.Contains(r.Body, []byte(`"harbor.`))
}

func isRegistry(r Request) bool {
	if isHarbor(r) {
		return true
	}
	var n notification
	return sniff(r, &n) &&
		(len(n.Events) > 0 || n.Target.Repository != "" || n.DockerURL != "" || n.PushData != nil)
}

func parseRegistry(r Request) (Event, error) {
	var n notification
	if err := decode(r.Body, "a registry's event", &n); err != nil {
		return Event{}, err
	}
	var e Event
	push := n.EventData
	if push == nil {
		push = n.Data
	}
	switch {
	case push != nil:
		kind := strings.ToLower(n.Type + r.Header.Get("Ce-Type"))
		if !strings.Contains(kind, "push") && !strings.Contains(kind, "artifact.pushed") {
			return Event{Ignored: "event " + clip(n.Type)}, nil
		}
		for _, res := range push.Resources {
			e.Artifacts = append(e.Artifacts, untagged(res.URL))
		}
	case n.DockerURL != "":
		e.Artifacts = []string{untagged(n.DockerURL)}
	case n.PushData != nil:
		var repo struct {
			RepoName string `json:"repo_name"`
		}
		if err := decode(n.Repository, "a registry's event", &repo); err != nil {
			return Event{}, err
		}
		e.Artifacts = []string{dockerHub + "/" + repo.RepoName}
	default:
		for _, d := range append(n.Events, n.distribution) {
			e.Artifacts = append(e.Artifacts, d.artifact()...)
		}
	}
	if len(e.Artifacts) == 0 {
		return Event{Ignored: "no artifact was pushed"}, nil
	}
	return e, nil
}

// artifact is what was pushed; nothing for a pull and all else.
func (d distribution) artifact() []string {
	host := d.Request.Host
	if u, err := url.Parse(d.Target.URL); err == nil && u.Host != "" {
		host = u.Host
	}
	if d.Action != "push" && d.Action != "chart_push" || d.Target.Repository == "" || host == "" {
		return nil
	}
	return []string{host + "/" + d.Target.Repository}
}

// dockerHub is the host that clients use for it.
const dockerHub = "registry-1.docker.io"

// untagged is a reference without tag and digest.
func untagged(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		ref = ref[:i]
	}
	return ref
}
