package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/apply"
	"github.com/lockstep-cd/lockstep/internal/cluster"
	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/plan"
)

// remains finds what is live and marked as the application's but not declared any more, who else needs it, and what the
// application shares with others.
func (e *Engine) remains(ctx context.Context, st *state, l *look) {
	l.extras, l.unproven = e.extras(st, l.app, l.set)
	e.needed(ctx, st, l)
	if len(l.unproven) > 0 {
		l.warn(v1alpha1.ConditionOrphanedResourceWarning, unprovenText(l.unproven))
	}
	shared := e.owners.shared(st.key)
	if len(shared) == 0 {
		return
	}
	held := map[manifest.Key]bool{}
	for _, it := range l.items {
		held[it.desired.key] = it.holder != ""
	}
	for _, s := range shared {
		if !held[s.key] {
			l.warn(v1alpha1.ConditionSharedResourceWarning, fmt.Sprintf("%s is declared by application %s, too", s.key, e.named(s.others[0])))
		}
	}
}

// needed fills in who else needs the extras.
func (e *Engine) needed(ctx context.Context, st *state, l *look) {
	l.shared = map[manifest.Key]string{}
	for i := range l.extras {
		x := &l.extras[i]
		x.Controlled = x.Controlled && e.alive(ctx, st, x)
		if others := e.owners.others(st.key, x.Key); len(others) > 0 {
			l.shared[x.Key] = "application " + e.named(others[0]) + " declares it"
		} else if app, inside := e.inside(st.key, x.Key); app != "" {
			l.shared[x.Key] = fmt.Sprintf("application %s declares %s, which would go with it", e.named(app), inside)
		}
	}
}

func (l *look) warn(t v1alpha1.ApplicationConditionType, message string) {
	l.warnings = append(l.warnings, v1alpha1.ApplicationCondition{Type: t, Message: oneLine(message)})
}

func unprovenText(keys []manifest.Key) string {
	return list(keys) + ": carries the label of this application, but there is no record that it was applied for it; " +
		"it is not pruned: delete it by hand, or take the label away"
}

// list names the first few keys.
func list(keys []manifest.Key) string {
	const most = 5
	var names []string
	for i, k := range keys {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(keys)-most))
			break
		}
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// named is an application's key as people write it: without the namespace that all of them are in.
func (e *Engine) named(key string) string { return strings.TrimPrefix(key, e.opts.Namespace+"/") }

// leftovers are the extras as the plan wants them.
func (l *look) leftovers() []plan.Extra {
	extra := make([]plan.Extra, 0, len(l.extras))
	for _, x := range l.extras {
		reason := ""
		switch {
		case x.Controlled:
			reason = "is kept: " + x.Controller.Kind + "/" + x.Controller.Name + " controls it and takes it away with itself"
		case x.Deleting:
			reason = "is being deleted already"
		case l.shared[x.Key] != "":
			reason = "is kept: " + l.shared[x.Key]
		}
		extra = append(extra, plan.Extra{Key: x.Key, Annotations: x.Steering, Reason: reason, Waits: l.waits[x.Key]})
	}
	return extra
}

// alive tells whether the object that controls x exists. Doubt counts as life; the garbage collector sees to what a dead
// controller leaves behind, so an answer holds for as long as x does.
func (e *Engine) alive(ctx context.Context, st *state, x *cluster.Live) bool {
	c := x.Controller
	if dead, known := st.controllers[c.UID]; known {
		return !dead
	}
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	if err != nil {
		return true
	}
	r, err := e.cluster.Kind(gv.WithKind(c.Kind))
	if err != nil {
		return true
	}
	u, err := e.cluster.Get(ctx, r, manifest.Key{Group: gv.Group, Kind: c.Kind, Namespace: x.Key.Namespace, Name: c.Name})
	dead := apierrors.IsNotFound(err) || err == nil && u.GetUID() != c.UID
	if err == nil || dead {
		if st.controllers == nil {
			st.controllers = map[types.UID]bool{}
		}
		st.controllers[c.UID] = dead
	}
	return !dead
}

// erase asks for a deletion. Watches may come back late after an API server was away: the record knows of it at once, so that
// what is gone is not taken for an object to prune, and a whole sync begun for it.
func (e *Engine) erase(ctx context.Context, r cluster.Resource, gone apply.Gone) error {
	if err := e.writer.Delete(ctx, target(r), gone); err != nil {
		return err
	}
	if !gone.DryRun {
		e.cluster.Ends(gone.Key, gone.UID, gone.ResourceVersion)
	}
	return nil
}

// remove deletes a live object that was looked at: gone says how. Should the object have changed since, it is read again and
// deleted if fits still says so; an object of the same name that was made since is never touched.
func (e *Engine) remove(ctx context.Context, l cluster.Live, gone apply.Gone, fits func(cluster.Live) bool) error {
	res, err := e.cluster.Kind(l.Key.GroupKind().WithVersion(""))
	if err != nil {
		return err
	}
	gone.Key, gone.UID, gone.ResourceVersion = l.Key, l.UID, l.ResourceVersion
	for try := 0; ; try++ {
		err := e.erase(ctx, res, gone)
		if try == raceLimit || !apierrors.IsConflict(err) {
			return err
		}
		u, rerr := e.cluster.Get(ctx, res, l.Key)
		if apierrors.IsNotFound(rerr) {
			return nil
		}
		if rerr != nil {
			return fmt.Errorf("%s: %w", l.Key, rerr)
		}
		now := e.read(u) //nolint:contextcheck // a rule of health that runs a script has its own bounds
		if now.UID != l.UID || !fits(now) {
			return err
		}
		gone.ResourceVersion = now.ResourceVersion
	}
}

// sameClaim tells of a later reading that it is ours as much as x was, and steered alike.
func sameClaim(x cluster.Live) func(cluster.Live) bool {
	return func(now cluster.Live) bool {
		return now.Owner == x.Owner && now.ByLabel == x.ByLabel && maps.Equal(now.Steering, x.Steering) && now.Controller == x.Controller
	}
}
