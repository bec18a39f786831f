package handover

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Recent is how long a write of Argo CD shows that it runs: it writes the time of its look into the status of every
// application it compares, each 3 minutes at most where nothing else is configured.
const Recent = 10 * time.Minute

// Evidence is what is known of an Argo CD beside us, apart from the Application in question.
type Evidence struct {
	// Controller is the workload of an application controller that runs in the Applications' namespace, such as
	// StatefulSet argocd/argocd-application-controller; empty when none does.
	Controller string
	// Seen is its last write of any Application of the namespace, and On the name of that one.
	Seen time.Time
	On   string
	Now  time.Time
}

// Finding is why an Application may not be written.
type Finding struct {
	// Kind tells one sort of evidence from another, while the sentence holds times; None when nothing is in the way.
	Kind Kind
	// Reason is a sentence.
	Reason string
	// Until is when the evidence ends if nothing is added to it; zero when time changes nothing.
	Until time.Time
}

// Kind is a sort of evidence.
type Kind uint8

// The sorts of evidence.
const (
	None Kind = iota
	// WrittenSince: Argo CD wrote an Application that was adopted.
	WrittenSince
	// Running: its controller runs in the Applications' namespace.
	Running
	// Written: it wrote this Application lately.
	Written
	// Neighbour: it wrote another Application of the namespace lately.
	Neighbour
)

// Contested tells why Lockstep must not write an Application: an Argo CD that runs keeps it, too. One that was adopted is
// contested only when Argo CD has written it since.
func Contested(o metav1.Object, c Claim, e Evidence) Finding {
	adopt := fmt.Sprintf("run `lockstep adopt %s` to hand it over", o.GetName())
	at := o.GetAnnotations()[AdoptedAnnotation]
	switch {
	case Adopted(o):
		if !e.recent(c.Theirs) || !c.after(at) {
			return Finding{}
		}
		return Finding{WrittenSince, fmt.Sprintf("Argo CD wrote the application at %s, although it was handed over; run `lockstep adopt %s` again",
			stamp(c.Theirs), o.GetName()), c.Theirs.Add(Recent)}
	case e.Controller != "" && at != "":
		return Finding{Kind: Running, Reason: fmt.Sprintf("Argo CD manages the application, too (%s runs): the marks of the hand-over are incomplete; %s",
			e.Controller, adopt)}
	case e.Controller != "":
		return Finding{Kind: Running, Reason: fmt.Sprintf("Argo CD manages the application, too (%s runs); %s", e.Controller, adopt)}
	case e.recent(c.Theirs) && !c.Theirs.Before(c.Ours):
		return Finding{Written, fmt.Sprintf("Argo CD manages the application, too (it wrote its status at %s); %s, or stop Argo CD and wait until %s",
			stamp(c.Theirs), adopt, stamp(c.Theirs.Add(Recent))), c.Theirs.Add(Recent)}
	case e.recent(e.Seen) && !e.Seen.Before(c.Ours):
		return Finding{Neighbour, fmt.Sprintf("Argo CD manages this namespace, too (it wrote application %s at %s); %s, or stop Argo CD and wait until %s",
			e.On, stamp(e.Seen), adopt, stamp(e.Seen.Add(Recent))), e.Seen.Add(Recent)}
	}
	return Finding{}
}

func (e Evidence) recent(at time.Time) bool { return !at.IsZero() && e.Now.Before(at.Add(Recent)) }

// after tells whether Argo CD has written since the time in an annotation. A text that is no time says nothing: then the
// Application is as good as never written.
func (c Claim) after(text string) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err != nil || c.Theirs.After(at)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
