package engine

import (
	"maps"
	"slices"
	"sync"
)

// names knows which repositories charts name as @name or alias:name, and the URLs that these led to: so that a Secret that
// gives a name to another URL, or to one for the first time, wakes who asked for it.
type names struct {
	mu    sync.Mutex
	byApp map[string]map[naming]string // the URL; empty when no repository has the name
}

// naming is a name as a chart of a project writes it.
type naming struct{ name, project string }

func newNames() *names { return &names{byApp: map[string]map[naming]string{}} }

// note keeps what a name led to; without an application nothing is followed, and a nil one knows nothing.
func (n *names) note(app, name, project, url string) {
	if n == nil || app == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byApp[app] == nil {
		n.byApp[app] = map[naming]string{}
	}
	n.byApp[app][naming{name, project}] = url
}

func (n *names) forget(app string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.byApp, app)
}

// moved are the applications for which a name leads elsewhere than they were told last. What it leads to now counts as told.
func (n *names) moved(lookup func(name, project string) (string, error)) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, moved := map[naming]string{}, map[string]bool{}
	for app, list := range n.byApp {
		for asked, was := range list {
			now, looked := known[asked]
			if !looked {
				now, _ = lookup(asked.name, asked.project) // an unknown name leads nowhere
				known[asked] = now
			}
			if now != was {
				list[asked], moved[app] = now, true
			}
		}
	}
	return slices.Collect(maps.Keys(moved))
}

// named is the URL that a name leads to for an application, which hears of it when that changes.
func (c *Chain) named(r request, name string) (string, error) {
	project := projectOf(r.app)
	url, err := c.Sources.named(name, project)
	c.names.note(r.key, name, project, url)
	return url, err
}
