package engine

import (
	"slices"
	"time"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/queue"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// What wakes an application, all of it (the inputs have their names in wakeups.go):
//   - its custom resource: spec, the annotations and labels that matter, operation, deletion (onApplication);
//   - a write of Argo CD's controller, and such a controller that comes or goes (onArgoCD, neighbours);
//   - its project (onProject);
//   - an application that it depends on (wakeDependents);
//   - another application that declares the same object, begins to or ends to (owners.set);
//   - the last application that its deletions waited for (doubts);
//   - a Secret with credentials for one of its repositories (secrets.go), or that gives a name that its chart uses to another;
//   - a repository whose refs lead somewhere else (onRepository);
//   - an API of the cluster that its chart looked for and that came or went (onCapabilities);
//   - a live object that it declares or owns (onLive);
//   - the settings in argocd-cm that say how objects are marked (configure);
//   - a timer: retry, heal backoff, a kind that could not be listed (queue.AddAfter).

func (e *Engine) onApplication(key string, old, now *v1alpha1.Application) {
	e.wakeDependents(old, now)
	e.feeds.tell(key, old, now)
	switch {
	case now == nil:
		e.whys.forget(key)
		e.rouse(InputApplication, key, queue.People)
	case old == nil:
		e.doubts.arrived(key)
		e.rouse(InputApplication, key, queue.Commits)
	case now.Operation != nil, now.DeletionTimestamp != nil && old.DeletionTimestamp == nil:
		e.rouse(InputApplication, key, queue.People)
	case terminating(now) && !terminating(old), wakeHash(old) != wakeHash(now),
		now.Annotations[RefreshAnnotation] != "" && refreshOf(now) != refreshOf(old):
		e.rouse(InputApplication, key, queue.People)
	}
}

func terminating(app *v1alpha1.Application) bool {
	return app.Status.OperationState != nil && app.Status.OperationState.Phase == v1alpha1.OperationTerminating
}

func (e *Engine) onArgoCD(key string) { e.queue.Add(key, queue.Housekeeping) }

func (e *Engine) onProject(name string) {
	for _, key := range e.applications.inProject(name) {
		e.rouse(InputProject, key, queue.Commits)
	}
}

func (e *Engine) onRepository(keys []string) {
	e.doubts.pend(keys)
	for _, key := range keys {
		e.rouse(InputRepository, key, queue.Commits)
	}
}

// onCredentials asks at once for every repository that did not answer: what was wrong may be right now. Those whose charts
// use a name that leads elsewhere now render again.
func (e *Engine) onCredentials() {
	for _, key := range e.names.moved(e.opts.Sources.named) {
		e.rouse(InputSecret, key, queue.Commits)
	}
	e.repos.credentialsAt(time.Now())
	if e.hears(InputSecret) {
		e.repos.retry()
	}
}

// onCapabilities looks whether the cluster serves something else than before.
func (e *Engine) onCapabilities(now job.Capabilities) {
	old := e.served.Load()
	if old != nil && old.KubeVersion == now.KubeVersion && slices.Equal(old.APIVersions, now.APIVersions) {
		return
	}
	if !e.served.CompareAndSwap(old, &now) || old == nil {
		return
	}
	for _, key := range e.readers.asked(now) {
		e.rouse(InputCluster, key, queue.Commits)
	}
}

func (e *Engine) onLive(c cluster.Change) {
	e.hooksSeen.note(c.Now)
	for _, key := range e.owners.of(c.Key) {
		e.rouse(InputLive, key, queue.Drift)
	}
	for _, l := range []cluster.Live{c.Old, c.Now} {
		for _, key := range e.marked(l) {
			e.rouse(InputLive, key, queue.Drift)
		}
	}
}

// onSilence tells of a watch that was made anew since nothing came through it.
func (e *Engine) onSilence(kind string, silent time.Duration) {
	e.opts.Metrics.renewed.Inc()
	e.log.Warn("watch made anew: it brought neither event nor bookmark", "kind", kind, "silent", silent)
}
