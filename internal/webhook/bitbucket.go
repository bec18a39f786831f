package webhook

import (
	"net/url"
	"strings"
)

type link struct {
	Href string `json:"href"`
}

// cloudRef is a branch or a tag of Bitbucket Cloud.
type cloudRef struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

func (r cloudRef) full() string {
	if r.Type == "tag" {
		return "refs/tags/" + r.Name
	}
	return "refs/heads/" + r.Name
}

// parseBitbucket reads events of Bitbucket Cloud. They do not tell the default branch.
func parseBitbucket(r Request) (Event, error) {
	type cloudRepository struct {
		FullName string `json:"full_name"`
		Links    struct {
			HTML link `json:"html"`
		} `json:"links"`
	}
	var p struct {
		Repository cloudRepository `json:"repository"`
		Push       struct {
			Changes []struct {
				New *cloudRef `json:"new"`
				Old *cloudRef `json:"old"`
			} `json:"changes"`
		} `json:"push"`
		Changes struct {
			FullName struct {
				Old string `json:"old"`
			} `json:"full_name"`
		} `json:"changes"`
	}
	if err := decode(r.Body, "an event of Bitbucket", &p); err != nil {
		return Event{}, err
	}
	html := p.Repository.Links.HTML.Href
	e := Event{RepoURLs: []string{html}}
	switch kind := r.Header.Get("X-Event-Key"); kind {
	case "repo:push":
		for _, c := range p.Push.Changes {
			for _, ref := range []*cloudRef{c.New, c.Old} { // a change that deletes has no new
				if ref != nil {
					e.Refs = append(e.Refs, ref.full())
				}
			}
		}
		return e, nil
	case "repo:updated":
		if old := p.Changes.FullName.Old; old != "" && strings.HasSuffix(html, "/"+p.Repository.FullName) {
			e.Formerly = []string{strings.TrimSuffix(html, p.Repository.FullName) + old}
			return e, nil
		}
		return Event{Ignored: "event " + kind}, nil
	default:
		return Event{Ignored: "event " + clip(kind)}, nil
	}
}

// serverRepository is what Bitbucket Data Center tells of one.
type serverRepository struct {
	Slug    string `json:"slug"`
	Project struct {
		Key string `json:"key"`
	} `json:"project"`
	Links struct {
		Clone []link `json:"clone"`
		Self  []link `json:"self"`
	} `json:"links"`
}

// urls are the clone URLs; where the version sends none, they are made of the address of the page.
func (r serverRepository) urls() []string {
	var list []string
	for _, l := range r.Links.Clone {
		list = append(list, l.Href)
	}
	for _, l := range r.Links.Self {
		u, err := url.Parse(l.Href)
		if err != nil || u.Host == "" || r.Slug == "" {
			continue
		}
		at := strings.Index(u.Path, "/projects/") // the context path stands before it
		if at < 0 {
			at = strings.Index(u.Path, "/users/")
		}
		key := strings.ToLower(r.Project.Key)
		list = append(list, u.Scheme+"://"+u.Host+u.Path[:max(at, 0)]+"/scm/"+key+"/"+r.Slug, "ssh://git@"+u.Hostname()+"/"+key+"/"+r.Slug)
	}
	return list
}

// parseBitbucketServer reads events of Bitbucket Server and Data Center. They do not tell the default branch.
func parseBitbucketServer(r Request) (Event, error) {
	var p struct {
		Repository serverRepository `json:"repository"`
		Old        serverRepository `json:"old"`
		New        serverRepository `json:"new"`
		Changes    []struct {
			RefID string `json:"refId"`
			Ref   struct {
				ID string `json:"id"`
			} `json:"ref"`
		} `json:"changes"`
	}
	kind := r.Header.Get("X-Event-Key")
	if kind == "diagnostics:ping" {
		return Event{Ignored: "ping"}, nil
	}
	if err := decode(r.Body, "an event of Bitbucket Data Center", &p); err != nil {
		return Event{}, err
	}
	switch kind {
	case "repo:refs_changed":
		e := Event{RepoURLs: p.Repository.urls()}
		for _, c := range p.Changes {
			if c.RefID == "" {
				c.RefID = c.Ref.ID
			}
			e.Refs = append(e.Refs, c.RefID)
		}
		return e, nil
	case "repo:modified":
		if urls, old := p.New.urls(), p.Old.urls(); len(urls) > 0 && len(old) > 0 {
			return Event{RepoURLs: urls, Formerly: old}, nil
		}
	}
	return Event{Ignored: "event " + clip(kind)}, nil
}
