package main

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// subject is one thing to deploy, or to offer to those that are.
type subject struct {
	item
	from   *checkout
	commit string
	// version is shown: a chart's, else the short commit.
	version string
	// err tells why it can not be assembled.
	err error
	// chart is the packed chart of an item with a repository.
	chart *packed
}

// collection is what the checkouts hold.
type collection struct {
	checkouts []*checkout
	subjects  []*subject
}

// commits of a checkout that are deployed from Git, its head first.
func (all *collection) commits(c *checkout) []string {
	commits := []string{c.head}
	for _, s := range all.subjects {
		if s.from == c && s.Repository == "" && s.err == nil && !slices.Contains(commits, s.commit) {
			commits = append(commits, s.commit)
		}
	}
	return commits
}

func deployable(list []*subject) int {
	n := 0
	for _, s := range list {
		if !s.ServeOnly {
			n++
		}
	}
	return n
}

// collect opens the checkouts and finds what to deploy.
func collect(ctx context.Context, o options, dir string) (*collection, error) {
	var chosen selection
	if o.selected != "" {
		var err error
		if chosen, err = readSelection(o.selected); err != nil {
			return nil, err
		}
	}
	all := &collection{}
	for _, from := range o.from {
		c, err := openCheckout(ctx, from, dir)
		if err != nil {
			return nil, err
		}
		all.checkouts = append(all.checkouts, c)
		items, ok := chosen.of(c)
		if !ok || len(o.paths) > 0 {
			if items, err = c.find(ctx, o.paths); err != nil {
				return nil, err
			}
		}
		for _, i := range items {
			all.subjects = append(all.subjects, newSubject(ctx, c, i))
		}
	}
	all.distinguish()
	return all, nil
}

func newSubject(ctx context.Context, c *checkout, i item) *subject {
	s := &subject{item: i, from: c, commit: c.head}
	if i.Ref != "" {
		s.commit, s.err = c.resolve(ctx, i.Ref)
	}
	if len(s.commit) >= 7 {
		s.version = s.commit[:7]
	}
	if s.Name == "" {
		s.Name = nameOf(i.Path)
	}
	return s
}

// nameOf makes an object's name of a folder's.
func nameOf(folder string) string {
	base := path.Base(folder)
	if base == "." {
		base = "root"
	}
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(base), "-")
	return strings.Trim(name[:min(len(name), 50)], "-")
}

// distinguish gives applications of one name different ones.
func (all *collection) distinguish() {
	seen := map[string]int{}
	for _, s := range all.subjects {
		if s.ServeOnly {
			continue
		}
		seen[s.Name]++
		if n := seen[s.Name]; n > 1 {
			s.Name = fmt.Sprintf("%s-%d", s.Name, n)
		}
	}
}

// find lists the charts and kustomizations of the commit that is checked out; with globs the folders that match one.
func (c *checkout) find(ctx context.Context, globs []string) ([]item, error) {
	files, err := c.files(ctx, c.head)
	if err != nil {
		return nil, err
	}
	charts := map[string]bool{}
	for _, f := range files {
		if path.Base(f) == "Chart.yaml" {
			charts[path.Dir(f)] = true
		}
	}
	var items []item
	taken := map[string]bool{}
	for _, f := range files {
		dir := path.Dir(f)
		if taken[dir] || inside(dir, charts) {
			continue
		}
		wanted := path.Base(f) == "Chart.yaml" || slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, path.Base(f))
		if len(globs) > 0 {
			wanted = slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, dir) })
		}
		if wanted {
			taken[dir] = true
			if ok, err := c.stands(ctx, f); err != nil {
				return nil, err
			} else if ok {
				items = append(items, item{Path: dir})
			}
		}
	}
	return items, nil
}

// inside tells whether a folder is a part of a chart: a sub-chart or its templates.
func inside(dir string, charts map[string]bool) bool {
	for at := path.Dir(dir); at != "."; at = path.Dir(at) {
		if charts[at] {
			return true
		}
	}
	return false
}

// stands tells whether what a file describes can be deployed by itself: a library chart or a component is for others.
func (c *checkout) stands(ctx context.Context, file string) (bool, error) {
	data, err := c.read(ctx, c.head, file)
	if err != nil {
		return false, err
	}
	part := regexp.MustCompile(`(?m)^(type:\s*library|kind:\s*Component)\s*$`)
	return !part.MatchString(data), nil
}
