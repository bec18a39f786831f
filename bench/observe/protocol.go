// Package observe owns the independent observer: a process that reads the API server and nothing else, and says the moment
// at which every object has the content of the commit and every Application is Synced and Healthy. Floor and Lockstep are
// judged by the same observer.
//
// It may depend on workload, kube and child.
package observe

import (
	"time"

	"github.com/lockstep-cd/lockstep/bench/workload"
)

// Config is what the observer's process reads first.
type Config struct {
	Kubeconfig string        `json:"kubeconfig"`
	Spec       workload.Spec `json:"spec"`
}

// Expected is a commit that changes applications. It is told before the commit is pushed: from then on the applications
// count as not in step. The others may be Synced to it or to an older one.
type Expected struct {
	// Applications that read a changed file, by their number.
	Applications []int `json:"applications"`
	// Version of their first object.
	Version int `json:"version"`
	// Revision is the commit.
	Revision string `json:"revision"`
}

// Command is what the process is asked: to expect something else of some applications, or to count. Each is answered with
// one Message of its number.
type Command struct {
	ID     int       `json:"id"`
	Expect *Expected `json:"expect,omitempty"`
	// Count asks for the events seen so far.
	Count bool `json:"count,omitempty"`
}

// Message is one thing that the process says.
type Message struct {
	// ID is that of the Command which is answered, 0 for what is said without being asked.
	ID int `json:"id,omitempty"`
	// Watching is said once, when every watch has begun.
	Watching bool `json:"watching,omitempty"`
	// InStep is said each time that everything has come into step.
	InStep *time.Time `json:"inStep,omitempty"`
	// PutBack is said when an object is right that was seen wrong after it had been right.
	PutBack  *PutBack  `json:"putBack,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
	// Counts answers a Command with Count.
	Counts *Counts `json:"counts,omitempty"`
	// Error ends the process.
	Error string `json:"error,omitempty"`
}

// PutBack tells that an object is right again.
type PutBack struct {
	Application int    `json:"application"`
	Kind        string `json:"kind"`
	// Wrong and Right are when each was seen.
	Wrong time.Time `json:"wrong"`
	Right time.Time `json:"right"`
}

// Progress is how much is right.
type Progress struct {
	Objects      int `json:"objects"`
	Applications int `json:"applications"`
	// Waiting describes one thing that is not right yet; empty when nothing is.
	Waiting string `json:"waiting,omitempty"`
}

// Counts are the changes seen.
type Counts struct {
	Objects      int64 `json:"objects"`
	Applications int64 `json:"applications"`
	// Quiet is how long nothing has changed.
	Quiet time.Duration `json:"quiet"`
}
