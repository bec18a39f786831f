package engine

import (
	"context"
	"maps"
	"slices"
)

// movingReason is the doubt about an application whose source has changed.
const movingReason = "it was not looked at since its source changed"

// moves takes up that a look at a repository found something else for applications, before anybody else learns of it: until
// each was looked at, or is known not to read what is different, an object that leaves one may have moved to another.
func (d *doubts) moves(repo string, apps map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for app := range apps {
		if d.moving[app] == nil {
			d.moving[app] = map[string]bool{}
		}
		d.moving[app][repo] = true
		d.changes[app]++
	}
}

// movingWith are the applications in doubt since a repository changed.
func (d *doubts) movingWith(repo string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for app, repos := range d.moving {
		if repos[repo] {
			list = append(list, app)
		}
	}
	return list
}

// passed takes up that what is different in a repository does not concern applications; it returns those to wake.
func (d *doubts) passed(repo string, apps []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var woken []string
	for _, app := range apps {
		if delete(d.moving[app], repo); len(d.moving[app]) > 0 {
			continue
		}
		delete(d.moving, app)
		switch why, still := d.unclear[app]; {
		case !still:
			woken = append(woken, d.help(app, false)...)
		case why == doubt{reason: movingReason}:
			woken = append(woken, app) // a look under way began before this change, and does not end the doubt
		}
	}
	return woken
}

// spread finds out whom the last look at a repository concerns, and wakes these.
func (r *repos) spread(ctx context.Context, e *repo) {
	e.mu.Lock()
	e.unread = false
	e.mu.Unlock()
	woken, passed := r.concerned(ctx, e, e.moved())
	if r.doubts == nil {
		r.wakeAll(woken)
		return
	}
	for _, app := range r.doubts.movingWith(e.key) {
		if !passed[app] { // it asked by itself, and may have begun before
			woken[app] = true
		}
	}
	r.wakeAll(woken)
	e.mu.Lock()
	maps.DeleteFunc(passed, func(app string, _ bool) bool { return woken[app] || e.movedOn(app) })
	freed := r.doubts.passed(e.key, slices.Collect(maps.Keys(passed)))
	e.mu.Unlock()
	r.freed(freed)
}

func (r *repos) wakeAll(apps map[string]bool) {
	if len(apps) > 0 {
		r.changed(slices.Collect(maps.Keys(apps)))
	}
}

// movedOn tells, with the lock held, that what an application follows leads elsewhere than it was passed on to.
func (e *repo) movedOn(app string) bool {
	for _, s := range e.subs[app] {
		if now, err := e.lead(s.source); err != nil || now.Commit != s.revision.Commit {
			return true
		}
	}
	return false
}
