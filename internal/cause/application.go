package cause

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/field"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// OfApplication finds everything that keeps an application from being in step and well, what blocks most first: what its
// conditions say, the sync that failed or waits, the deepest cause below what is not well, and what is out of step and
// stays so. in is what the cluster shows of it, without a root. It is empty when all is well.
func OfApplication(app *v1alpha1.Application, in Input) []Cause {
	a := applicationNode(app)
	found := a.conditions()
	found = append(found, a.operation(in)...)
	in.Root = Object{Fields: a.fields, Health: v1alpha1.HealthStatus{Status: app.Status.Health.Status, Message: app.Status.Health.Message}}
	if c, ok := Of(in); ok {
		found = append(found, c)
	}
	if len(found) == 0 {
		found = a.outOfStep()
	}
	return distinct(found)
}

// OfHealth finds what explains most of why an application is not well: the deepest cause below one of its objects. What the
// application's own health says is left out, so that the answer can be written there. in is as for OfApplication.
func OfHealth(app *v1alpha1.Application, in Input) (Cause, bool) {
	in.Root = Object{Fields: applicationNode(app).fields, Health: v1alpha1.HealthStatus{Status: app.Status.Health.Status}}
	return Of(in)
}

// subject is an application that is asked about.
type subject struct {
	*node
	app *v1alpha1.Application
}

func applicationNode(app *v1alpha1.Application) subject {
	return subject{app: app, node: newNode(Object{Fields: field.Map{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": app.Name, "namespace": app.Namespace, "uid": string(app.UID)},
	}})}
}

// distinct leaves out what was said before.
func distinct(all []Cause) []Cause {
	var out []Cause
	for _, c := range all {
		if !slices.ContainsFunc(out, func(o Cause) bool { return o.Sentence == c.Sentence }) {
			out = append(out, c)
		}
	}
	return out
}

// sign is what a text of ours or of the API server tells, with the next step.
type sign struct {
	reason Reason
	text   *regexp.Regexp
	next   string
}

// signs in the order in which they are tried. The texts are those of the links of the chain. Read only.
var signs = []sign{
	{ProjectRefusal, regexp.MustCompile(`not permitted by the project`), "add what is named to the project, or change the application"},
	{SyncWindow, regexp.MustCompile(`sync window`), "wait for the window, or sync by hand where it permits that"},
	{SourceCredentials, regexp.MustCompile(`authentication needed|access denied|permission denied \(publickey`), "give the repository's Secret credentials that work"},
	{RevisionUnknown, regexp.MustCompile(`unknown revision|no such version`), "correct targetRevision, or push what it names"},
	{SourceMissing, regexp.MustCompile(`repository not found|no such chart|no repository`), "correct the repository's URL or the chart's name"},
	{SourceAway, regexp.MustCompile(`repository unreachable|can't be reached|server not trusted`), "look at the server and the way to it; it is tried again"},
	{KindMissing, regexp.MustCompile(`does not serve this kind`), "install its CustomResourceDefinition first, or correct the apiVersion"},
	{DependencyCycle, regexp.MustCompile(`applications wait for each other`), "take one of the dependencies out"},
}

// byType are the reasons of conditions whose text says nothing that is known.
var byType = map[v1alpha1.ApplicationConditionType]struct {
	reason Reason
	next   string
}{
	v1alpha1.ConditionInvalidSpecError: {SpecInvalid, "correct the application's spec"},
	v1alpha1.ConditionComparisonError:  {RenderingFailed, "correct what is named, and push"},
	v1alpha1.ConditionSyncError:        {SyncFailed, "correct what is named; a new commit is synced anew"},
	v1alpha1.ConditionDeletionError:    {DeletionBlocked, "take away what blocks, or leave the objects behind"},
}

// conditions are the causes that the conditions hold; warnings keep nothing from happening.
func (a subject) conditions() []Cause {
	var out []Cause
	for _, c := range a.app.Status.Conditions {
		if !strings.HasSuffix(string(c.Type), "Error") {
			continue
		}
		kind, known := byType[c.Type]
		if !known {
			kind.reason, kind.next = Unhealthy, "look at the application's conditions"
		}
		out = append(out, a.told(c.Message, sign{reason: kind.reason, next: kind.next}, string(c.Type)))
	}
	return out
}

// told is a cause whose sentence is a message that names its object itself.
func (a subject) told(message string, otherwise sign, says string) Cause {
	for _, s := range signs {
		if s.text.MatchString(message) {
			otherwise = s
			break
		}
	}
	return Cause{
		Reason: otherwise.reason, Sentence: strings.Join(strings.Fields(message), " "), Next: otherwise.next,
		Chain: []Link{{Object: a.title(), Says: says}},
	}
}

// operation are the causes that a sync which failed, or which waits, holds.
func (a subject) operation(in Input) []Cause {
	op := a.app.Status.OperationState
	switch {
	case op == nil:
		return nil
	case op.Phase == v1alpha1.OperationFailed || op.Phase == v1alpha1.OperationError:
		if a.app.Status.Sync.Status == v1alpha1.SyncSynced {
			return nil // it came into step by other means
		}
	case op.Phase.Completed() || op.Message == "":
		return nil
	default:
		return []Cause{a.told(op.Message, sign{reason: Waiting, next: "it goes on by itself; lockstep app terminate ends it"}, "sync "+string(op.Phase))}
	}
	var out []Cause
	if op.SyncResult != nil {
		for _, r := range op.SyncResult.Resources {
			if c, ok := a.result(r, in); ok {
				out = append(out, c)
			}
		}
	}
	if len(out) > 0 {
		return out
	}
	return []Cause{a.told(op.Message, sign{reason: SyncFailed, next: "correct what is named; a new commit is synced anew"}, "sync "+string(op.Phase))}
}

// result explains an object that a sync could not bring about; a hook by what the cluster shows of it.
func (a subject) result(r *v1alpha1.ResourceResult, in Input) (Cause, bool) {
	title := r.Kind + " " + place(r.Namespace, r.Name)
	hook := r.HookPhase == v1alpha1.OperationFailed || r.HookPhase == v1alpha1.OperationError
	if !hook && r.Status != v1alpha1.ResultSyncFailed {
		return Cause{}, false
	}
	c := Cause{Reason: SyncFailed, Sentence: title + ": " + steady.Message(r.Message), Next: "correct what is named; a new commit is synced anew"}
	if hook {
		c.Reason, c.Next = HookFailed, "read its log; correct what fails and sync again"
		c.Sentence = string(r.HookType) + " hook " + title + " failed: " + steady.Message(r.Message)
		if deeper, ok := ofMember(in, r); ok {
			c.Sentence = string(r.HookType) + " hook " + title + " failed: " + strings.TrimPrefix(deeper.Sentence, title+": ")
			c.Next, c.Chain = deeper.Next, deeper.Chain
		}
	} else if refused, ok := OfRefusal(title, r.Message); ok {
		c = refused
	}
	c.Chain = append([]Link{{Object: a.title(), Says: "sync " + string(a.app.Status.OperationState.Phase)}}, c.Chain...)
	return c, true
}

// ofMember finds the cause below one object of the subtree.
func ofMember(in Input, r *v1alpha1.ResourceResult) (Cause, bool) {
	t := newTree(in)
	n := t.find(r.Kind, r.Namespace, r.Name)
	if n == nil {
		return Cause{}, false
	}
	found, ok := t.search(n)
	return found.Cause, ok
}

// outOfStep says why what differs stays so, where nothing else does.
func (a subject) outOfStep() []Cause {
	if a.app.Status.Sync.Status != v1alpha1.SyncOutOfSync {
		return nil
	}
	var names []string
	left := 0
	for i := range a.app.Status.Resources {
		switch r := &a.app.Status.Resources[i]; {
		case r.Status != v1alpha1.SyncOutOfSync:
		case r.RequiresPruning:
			left++
		default:
			names = append(names, r.Kind+" "+place(r.Namespace, r.Name))
		}
	}
	c := Cause{Reason: OutOfStep, Chain: []Link{{Object: a.title(), Says: string(v1alpha1.SyncOutOfSync)}}}
	switch {
	case len(names) == 0 && left > 0:
		c.Sentence, c.Next = a.title()+": objects that left the source are still there, since it does not prune by itself", "sync with --prune, or set syncPolicy.automated.prune"
	case !a.automated():
		c.Sentence, c.Next = a.title()+": it differs from its source and is synced by hand: "+some(names), "lockstep app diff shows what differs, lockstep app sync brings it into step"
	case !a.app.Spec.SyncPolicy.Automated.SelfHeal:
		c.Sentence, c.Next = a.title()+": the cluster was changed, and it does not heal itself: "+some(names), "lockstep app sync brings it back, or set syncPolicy.automated.selfHeal"
	default:
		c.Sentence, c.Next = a.title()+": it is about to be brought into step: "+some(names), "wait for it; lockstep app diff shows what differs"
	}
	return []Cause{c}
}

// automated tells whether commits are synced by themselves.
func (a subject) automated() bool {
	p := a.app.Spec.SyncPolicy
	return p != nil && p.Automated != nil && (p.Automated.Enabled == nil || *p.Automated.Enabled)
}

// some names the first few.
func some(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and more"
	}
	return strings.Join(names, ", ")
}
