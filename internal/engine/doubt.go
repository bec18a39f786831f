package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// doubts knows the applications of which it is not known what they declare: those not looked at since the start or since
// their source changed, and those without a valid rendering now. What one of them could declare is not deleted: it may have
// moved there (DESIGN.md §2.5, "Prune").
type doubts struct {
	mu     sync.Mutex
	unseen map[string]bool
	// unclear is why an application's declarations are not known.
	unclear map[string]doubt
	// moving are, by application, the repositories that have changed since it was looked at.
	moving map[string]map[string]bool
	// changes counts, by application, how often its source has changed: a look that began before knows too little.
	changes map[string]uint64
	// waiting are the applications that have something to delete, and for whom they wait; "" is for all that are unseen.
	waiting map[string]string
}

// doubt is about one application. Of a paused one what it declared last counts, which its status lists; of any other see
// couldDeclare.
type doubt struct {
	reason string
	paused bool
}

func newDoubts() *doubts {
	return &doubts{
		unseen: map[string]bool{}, unclear: map[string]doubt{}, moving: map[string]map[string]bool{}, changes: map[string]uint64{},
		waiting: map[string]string{},
	}
}

// arrived notes an application that is new to this process.
func (d *doubts) arrived(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unseen[key] = true
}

// pend notes applications whose source has changed: an object that leaves one of them may have moved to another by the same
// commit.
func (d *doubts) pend(keys []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		d.changes[key]++
		d.unclear[key] = doubt{reason: movingReason}
	}
}

// asOf is the state of an application's source at the beginning of a look, for note and clear.
func (d *doubts) asOf(key string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes[key]
}

// clear notes that it is known what an application declares; it returns those to wake.
func (d *doubts) clear(key string, asOf uint64) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changes[key] == asOf {
		delete(d.unclear, key)
		delete(d.moving, key)
	}
	return d.free(key)
}

// note takes up why it is not known what an application declares; it returns those to wake.
func (d *doubts) note(key string, asOf uint64, why doubt) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unclear[key] = why
	if d.changes[key] == asOf {
		delete(d.moving, key)
	}
	return d.free(key)
}

// forget drops an application that declares nothing any more.
func (d *doubts) forget(key string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.unclear, key)
	delete(d.moving, key)
	delete(d.changes, key)
	return d.free(key)
}

// free takes key off the unseen, and off the waiting those whom that, or what became of key, may help.
func (d *doubts) free(key string) []string {
	last := d.unseen[key] && len(d.unseen) == 1
	delete(d.unseen, key)
	return d.help(key, last)
}

// help takes off the waiting those who wait for key, and with last those who wait for all that are unseen.
func (d *doubts) help(key string, last bool) []string {
	var out []string
	for k, whom := range d.waiting {
		if whom == key || whom == "" && last {
			out = append(out, k)
			delete(d.waiting, k)
		}
	}
	return out
}

// about returns the doubts about others than key; all tells that some were not even looked at, and key waits for that.
func (d *doubts) about(key string) (others map[string]doubt, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, key)
	if n := len(d.unseen); n > 1 || n == 1 && !d.unseen[key] {
		d.waiting[key] = ""
		return nil, true
	}
	others = make(map[string]doubt, len(d.unclear)+len(d.moving))
	for k := range d.moving {
		if k != key {
			others[k] = doubt{reason: movingReason}
		}
	}
	for k, why := range d.unclear {
		if k != key {
			others[k] = why
		}
	}
	return others, false
}

// wait notes that key waits for another application, and tells whether there is still doubt about that one.
func (d *doubts) wait(key, whom string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[key] = whom
	_, still := d.unclear[whom]
	return still || d.moving[whom] != nil
}

// settle notes whether it is known what the application declares, after a look. A cluster that does not answer is no doubt
// about that.
func (e *Engine) settle(st *state, l *look, asOf uint64) {
	var source *sourceFault
	if l.invalid == nil && l.set != nil && !errors.As(l.failed, &source) {
		e.wake(e.doubts.clear(st.key, asOf))
		return
	}
	e.wake(e.doubts.note(st.key, asOf, doubt{reason: "it can not be rendered: " + oneLine(cmpErr(l.invalid, l.failed).Error())}))
}

// heldBack says for whom the prunes of an operation have to wait, by object. A person's confirmation ends the waiting.
func (e *Engine) heldBack(st *state, l *look) map[manifest.Key]string {
	if !l.prune || l.approved || st.running.op.Sync.DryRun || len(l.extras) == 0 {
		return nil
	}
	keys := make([]manifest.Key, 0, len(l.extras))
	for _, x := range l.extras {
		if !x.Controlled && !x.Deleting && l.shared[x.Key] == "" {
			keys = append(keys, x.Key)
		}
	}
	return e.holds(st.key, keys)
}

// holds says, by object, for which other application its deletion has to wait: one that could declare it and of which it is
// not known what it declares.
func (e *Engine) holds(key string, objects []manifest.Key) map[manifest.Key]string {
	if len(objects) == 0 {
		return nil
	}
	out := make(map[manifest.Key]string, len(objects))
	others, all := e.doubts.about(key)
	if all {
		for _, k := range objects {
			out[k] = "until every application was looked at once since Lockstep started"
		}
		return out
	}
	names := make([]string, 0, len(others))
	for k := range others {
		names = append(names, k)
	}
	slices.Sort(names) // the same one is named each time
	permits := permissions{projects: e.projects, known: map[permission]bool{}}
	first := ""
	for _, name := range names {
		app, unreadable := e.applications.get(name)
		if app == nil || app.DeletionTimestamp != nil {
			continue
		}
		suspect := suspect{app: app, paused: others[name].paused, unreadable: unreadable != nil}
		suspect.learn()
		for _, k := range objects {
			if out[k] == "" && suspect.couldDeclare(k, permits) {
				out[k] = fmt.Sprintf("for application %s, which could declare it: %s", e.named(name), others[name].reason)
				first = orElse(first, name)
			}
		}
	}
	if first != "" && !e.doubts.wait(key, first) {
		e.wake([]string{key}) // it was looked at meanwhile
	}
	return out
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// suspect is an application of which it is not known what it declares.
type suspect struct {
	app        *v1alpha1.Application
	paused     bool
	unreadable bool
	// listed is what it declared when it was compared last, spaces are the namespaces of that.
	listed map[manifest.Key]bool
	spaces map[string]bool
}

func (s *suspect) learn() {
	s.listed, s.spaces = listedIn(s.app), map[string]bool{s.app.Spec.Destination.Namespace: true}
	for k := range s.listed {
		s.spaces[k.Namespace] = true
	}
}

// couldDeclare tells whether the object may be the application's: it was when that was compared last, or its project
// permits it, and it lies where the application has something. Of an application that was never compared, and of objects
// that are in no namespace, with which much may go, only the project counts.
func (s *suspect) couldDeclare(k manifest.Key, permits permissions) bool {
	switch {
	case s.listed[k], s.unreadable:
		return true
	case s.paused, destination(s.app.Spec.Destination) != nil:
		return false
	case k.Namespace != "" && s.app.Status.ReconciledAt != nil && !s.spaces[k.Namespace]:
		return false
	}
	return permits.permits(projectOf(s.app), k)
}

// heldUp says what waits for whom, and how a person ends the waiting.
func heldUp(what string, waiting []plan.Kept) string {
	keys := make([]manifest.Key, 0, len(waiting))
	for _, w := range waiting {
		keys = append(keys, w.Key)
	}
	return fmt.Sprintf("the %s of %s waits %s; to go on without waiting, set the annotation %s to the current time (RFC 3339)",
		what, list(keys), waiting[0].Reason, ApprovedAnnotation)
}

// listedIn are the objects that the application declared when it was compared last.
func listedIn(app *v1alpha1.Application) map[manifest.Key]bool {
	keys := make(map[manifest.Key]bool, len(app.Status.Resources))
	for _, r := range app.Status.Resources {
		if !r.RequiresPruning {
			keys[manifest.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}] = true
		}
	}
	return keys
}
