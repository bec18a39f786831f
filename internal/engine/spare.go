package engine

import (
	"fmt"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// answer is what becomes of an object in a sync; failure is why the sync fails for it.
type answer struct {
	code             v1alpha1.ResultCode
	message, failure string
}

// spared is the answer for an object for which nothing is to be sent; it tells whether it is one.
func (r *running) spared(it *item, opts plan.Set) (answer, bool) {
	d := it.desired
	rests := it.inSync() && !r.masked(it, opts)
	if done := r.results[result{key: d.key, phase: plan.Sync}]; d.made {
		rests = done != nil && done.Status == v1alpha1.ResultSynced // by this operation
	}
	switch {
	case it.holder != "":
		a := answer{code: v1alpha1.ResultSyncFailed, message: "belongs to application " + it.holder + ", which still declares it; it was left alone"}
		if opts.Has(failOnShared) {
			a.failure = d.key.String() + ": " + a.message
		}
		return a, true
	case d.problem != nil && !d.unserved: // found since the sync began, when its kind was not served
		return answer{v1alpha1.ResultSyncFailed, d.problem.Error(), d.problem.Error()}, true
	case rests:
		return answer{code: v1alpha1.ResultSynced, message: inStep}, true
	}
	return answer{}, false
}

// failOnShared makes a sync fail, before anything is applied, for an object that another application declares and owns.
const failOnShared = "FailOnSharedResource=true"

// sharedFault is the sentence for it; nil where there is none.
func sharedFault(it *item, opts plan.Set) error {
	if it.holder == "" || !opts.Has(failOnShared) {
		return nil
	}
	return at(it.desired.Object, fmt.Errorf("belongs to application %s, which declares it too; take it out of one of them, or leave out the sync option %s", it.holder, failOnShared))
}
