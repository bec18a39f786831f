package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/settings"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// differences are what the loop should have seen by now, with the first input in the order of the chain that explains them:
// what follows from it is not said again.
func (a *auditor) differences(key string, h held, f fresh) []Mismatch {
	d := &comparison{auditor: a, key: key, held: h, fresh: f}
	for _, step := range []func(){d.application, d.project, d.settings, d.dependencies, d.validity, d.sources, d.rendering, d.claims, d.status} {
		if step(); len(d.list) > 0 || d.done {
			break
		}
	}
	return d.list
}

// comparison of what is held with what was found.
type comparison struct {
	auditor *auditor
	key     string
	held    held
	fresh   fresh
	list    []Mismatch
	done    bool // there is nothing more to compare
}

func (c *comparison) tell(in Input, object, held, found string) {
	c.list = append(c.list, Mismatch{Application: c.key, Input: in, Object: object, Held: held, Found: found})
}

func (c *comparison) application() {
	now := wakeHash(c.fresh.app)
	switch {
	case wakeHash(c.held.app) != now:
		c.tell(InputApplication, "", "an older custom resource", "a newer one")
	case c.held.looked.application != now:
		c.tell(InputApplication, "", "a look at an older custom resource", "a newer one")
	}
}

func (c *comparison) project() {
	name := projectOf(c.fresh.app)
	rules, exists := c.auditor.engine.projects.rules(name)
	switch {
	case exists != c.fresh.exists, exists && !rules.Equal(c.fresh.rules):
		c.tell(InputProject, name, "an older project", "a newer one")
	case exists && !c.held.looked.rules.Equal(c.fresh.rules):
		c.tell(InputProject, name, "a look by older rules", "newer ones")
	}
}

// settings looks at how objects are to be marked, and at what is well. An application without a valid spec marks nothing.
func (c *comparison) settings() {
	now, held := c.fresh.settings, c.auditor.engine.configuration.Load()
	switch {
	case c.fresh.invalid != nil:
	case held.marks != now.marks || c.held.claims != nil && c.held.marks != now.marks:
		c.tell(InputSettings, settings.ConfigMap, "other marks", "marks by "+string(now.marks.Method))
	case !held.same(now):
		c.tell(InputSettings, settings.ConfigMap, "other rules of health", "newer ones")
	}
}

// dependencies looks at what the application waits for.
func (c *comparison) dependencies() {
	said := condition(c.held.app, v1alpha1.ConditionWaitingWarning)
	if !strings.HasPrefix(said, waitsForApplication) {
		return
	}
	if now := c.auditor.engine.waitsFor(c.fresh.app); now != said {
		c.tell(InputDependency, "", said, first(nonEmpty(now, "nothing to wait for")))
	}
}

func condition(app *v1alpha1.Application, t v1alpha1.ApplicationConditionType) string {
	for _, c := range app.Status.Conditions {
		if c.Type == t {
			return c.Message
		}
	}
	return ""
}

// validity compares why the application can not be compared.
func (c *comparison) validity() {
	held, found := condition(c.held.app, v1alpha1.ConditionInvalidSpecError), c.fresh.invalid
	if (held != "") == (found != nil) {
		c.done = found != nil
		return
	}
	in := InputApplication
	if c.fresh.app.Annotations[DependsOnAnnotation] != "" {
		in = InputDependency
	}
	c.tell(in, "", first(nonEmpty(held, "a valid application")), word(found, "a valid application"))
}

func word(err error, none string) string {
	if err == nil {
		return none
	}
	return oneLine(err.Error())
}

// sources compares what the target revisions lead to, and whether they can be read at all.
func (c *comparison) sources() {
	for _, s := range effective(c.fresh.app.Spec) {
		if at, missed, err := c.auditor.engine.repos.missedCredentials(located{s, projectOf(c.fresh.app)}); missed {
			c.tell(InputSecret, s.RepoURL, "since "+at.UTC().Format(time.RFC3339)+" that it can't be read: "+oneLine(err.Error()), "credentials that changed since, and no new look")
			return
		}
	}
	failed := c.held.looked.failed
	if c.fresh.unreached || c.fresh.failed != nil && failed != nil {
		c.done = true // nothing is known of the content, or both sides know that it is at fault
		return
	}
	if c.fresh.failed != nil || failed != nil {
		c.tell(InputRepository, "", word(failed, "a rendering"), word(c.fresh.failed, "a rendering"))
		return
	}
	if c.held.rendering == nil {
		c.tell(InputRepository, "", "no rendering", "one")
		return
	}
	for i, now := range c.fresh.rendering.resolved {
		if i < len(c.held.commits) && c.held.commits[i] != now {
			s := effective(c.fresh.app.Spec)[i]
			c.tell(InputRepository, s.RepoURL+" "+s.TargetRevision, c.held.commits[i], now)
			return
		}
	}
}

// missedCredentials tells that the last look at the source failed, that credentials changed since, and that no new look was
// made or asked for.
func (r *repos) missedCredentials(s located) (at time.Time, missed bool, failure error) {
	r.mu.Lock()
	e, changed := r.byKey[r.sources.key(s)], r.credentials
	r.mu.Unlock()
	if e == nil {
		return at, false, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at, e.err != nil && !e.asked && !e.at.IsZero() && e.at.Before(changed), e.err
}

// rendering compares the manifests, and finds what was read that is different now.
func (c *comparison) rendering() {
	held, found := c.held.rendering, c.fresh.rendering
	if held.digest == found.digest {
		return
	}
	if held.tool != found.tool {
		c.done = true // it waits for its turn to be rendered again
		return
	}
	if in, what := different(held, found); in != "" {
		c.tell(in, what, "manifests "+held.digest, "manifests "+found.digest)
		return
	}
	if readsHTTP(held) || readsHTTP(found) {
		c.done = true // what a URL answers is asked for with each new rendering, and not followed
		return
	}
	c.tell(InputCluster, "capabilities", "manifests "+held.digest, "manifests "+found.digest)
}

// different finds an input that two renderings do not share.
func different(held, found *rendering) (Input, string) {
	for i := range min(len(held.parts), len(found.parts)) {
		was, is := held.parts[i], found.parts[i]
		if path := tree.Different(was.Own, is.Own); path != "" {
			return InputFiles, path
		}
		for name, reads := range was.Refs {
			if path := tree.Different(reads, is.Refs[name]); path != "" {
				return InputFiles, "$" + name + "/" + path
			}
		}
		led, named := map[string]string{}, map[string]string{}
		for _, f := range was.Fetched {
			led[f.Locator.String()], named[f.Name] = f.Found, f.Locator.URL
		}
		for _, f := range is.Fetched {
			if url, known := named[f.Name]; f.Name != "" && known && url != f.Locator.URL {
				return InputSecret, f.Name
			}
			if was, known := led[f.Locator.String()]; known && was != f.Found {
				return InputRepository, f.Locator.String()
			}
		}
	}
	return "", ""
}

// claims compares what is declared for the cluster: the same manifests mean something else where the cluster serves other
// kinds.
func (c *comparison) claims() {
	if c.held.stale {
		c.done = true
		return
	}
	if c.held.claims == nil {
		c.tell(InputCluster, "", "nothing prepared", "a rendering")
		return
	}
	found := claims(c.fresh.set)
	keys := slices.SortedFunc(maps.Keys(found), compareKeys)
	for _, k := range keys {
		if was, known := c.held.claims[k]; !known || was != found[k] {
			c.tell(InputCluster, k.String(), first(nonEmpty(was, "not declared")), found[k])
			return
		}
	}
	if len(found) != len(c.held.claims) {
		c.tell(InputCluster, "", fmt.Sprintf("%d objects", len(c.held.claims)), fmt.Sprintf("%d", len(found)))
	}
}

// status compares what the custom resource says of the cluster.
func (c *comparison) status() {
	was := c.held.app.Status
	l := *c.fresh.look
	l.app = c.held.app
	now := c.auditor.engine.assess(&l, outcome{}, metav1.Now())
	held := map[manifest.Key]v1alpha1.SyncStatusCode{}
	for _, r := range was.Resources {
		held[manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}] = r.Status
	}
	exempt := map[manifest.Key]bool{}
	for i := range c.fresh.set.objects { // in step or not by what an operation did, not by what is in the cluster
		exempt[c.fresh.set.objects[i].key] = c.fresh.set.objects[i].made
	}
	made := false
	for _, r := range now.Resources {
		k := manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
		status, known := held[k]
		delete(held, k)
		if made = made || exempt[k]; !exempt[k] && (!known || status != r.Status) {
			c.tell(InputLive, k.String(), first(nonEmpty(string(status), "nothing")), string(r.Status))
		}
	}
	for k, status := range held {
		c.tell(InputLive, k.String(), first(nonEmpty(string(status), "an object")), "no object")
	}
	if len(c.list) > 0 || made {
		slices.SortFunc(c.list, func(a, b Mismatch) int { return strings.Compare(a.Object, b.Object) })
		return
	}
	if was.Sync.Status != now.Sync.Status {
		c.tell(InputLive, "sync status", string(was.Sync.Status), string(now.Sync.Status))
	}
	if was.Health.Status != now.Health.Status {
		c.tell(InputLive, "health", string(was.Health.Status), string(now.Health.Status))
	}
}

func readsHTTP(r *rendering) bool {
	for _, p := range r.parts {
		for _, f := range p.Fetched {
			if f.Found == "" {
				return true
			}
		}
	}
	return false
}
