package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/compare"
	"github.com/lockstep-cd/lockstep/internal/handover"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/project"
	"github.com/lockstep-cd/lockstep/internal/record"
	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// state is what the engine remembers of one application between two looks. One worker at a time uses it; all of it can be
// lost: what decides over writing and deleting stands in the custom resource.
type state struct {
	key string
	// busy is held by the worker, and by the audit while it copies what is held.
	busy sync.Mutex
	// looked is what the last look that ended was at.
	looked looked
	// distrusted asks the next look to take nothing over from the one before.
	distrusted atomic.Bool
	// seen tells that the application was looked at once.
	seen atomic.Bool
	// away tells that the application is not ours to keep, and contest the evidence that was last told of.
	away    atomic.Bool
	contest handover.Kind
	// failures in a row of the reconcile itself.
	failures int
	// unreached counts how often in a row something of a source could not be got.
	unreached int

	rendering *rendering
	desired   *desiredSet
	// wanted are the keys registered with the cluster.
	wanted []manifest.Key
	// proofs of what was applied; nil until they are loaded.
	proofs record.Proofs
	// verdicts of objects that needed the API server's answer, valid while desired and live stay as they were.
	verdicts map[manifest.Key]verdict
	// ignoring are the rules of what is not compared.
	ignoring ignoring
	// remarked tells that objects are marked otherwise since they were put back last: what differs is our own mark.
	remarked bool
	// running is the operation under way.
	running *running
	// controllers tells, by uid, which objects that control others are dead.
	controllers map[types.UID]bool
	// leaving is what the hooks of a deletion are taken from, and patience with what it waits for.
	leaving  *look
	patience patience
	// revisionDue is when a compared revision that changed alone is written, in nanoseconds; 0 when none waits. It is set by
	// looks at repositories too.
	revisionDue atomic.Int64
}

// dueAt is when a compared revision that changed alone is written: as it was settled before, or after the time that turn
// answers.
func (st *state) dueAt(now time.Time, turn func() time.Duration) time.Time {
	if due := st.revisionDue.Load(); due != 0 {
		return time.Unix(0, due)
	}
	due := now.Add(turn())
	if !st.revisionDue.CompareAndSwap(0, due.UnixNano()) {
		return time.Unix(0, st.revisionDue.Load())
	}
	return due
}

// looked is what a look was at, for the audit.
type looked struct {
	count int
	// application is the wakeHash; rules are those of the project.
	application string
	rules       project.Rules
	// failed is why it could not be compared.
	failed error
}

type verdict struct {
	desired, live string
	result        compare.Verdict
	paths         []string
	masked        bool
	note          string
}

// desired is one object as it is applied: cleaned, placed in its namespace, marked as ours.
type desired struct {
	manifest.Object
	key      manifest.Key
	resource cluster.Resource
	// hash of body; body is what is sent. Of a Secret the body is sealed and the object holds no data.
	hash   string
	body   []byte
	sealed bool
	// generated are the fields that are set at creation and then kept as they are live.
	generated []job.Path
	// made objects are created and never applied again: those whose name the API server makes up, and those of kinds that
	// know no patch, such as access reviews (DESIGN.md §2.5, rule 5).
	made bool
	// problem says why the object can't be applied at all.
	problem error
	// unserved tells that its kind is not served, which SkipDryRunOnMissingResource makes no problem.
	unserved bool
}

// desiredSet is a rendering made ready for one destination.
type desiredSet struct {
	objects  []desired
	byKey    map[manifest.Key]int
	hooks    []desired
	kinds    []schema.GroupKind
	warnings []v1alpha1.ApplicationCondition
	digest   string
	inputs   string
	// revisions that the rendering was made of.
	revisions []string
	// rules are those of the project that the set was held against.
	rules project.Rules
	// marks are those that the objects carry.
	marks marks
	// dropped are the warnings of what Validate=false leaves out, and loose whether it is the application's; nil when not known.
	dropped []v1alpha1.ApplicationCondition
	loose   bool
	// stale tells that a kind was not served when the set was made: it is made again with the next look.
	stale bool
}
