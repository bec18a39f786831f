package engine

import "github.com/lockstep-cd/lockstep/internal/queue"

// Input is a kind of thing that an application's state depends on. The list is closed (DESIGN.md §4): whatever else decides
// over an application must be part of one of these, and wakes it under that name.
type Input string

// The inputs.
const (
	// InputApplication is the custom resource itself: spec, labels, annotations, operation, deletion.
	InputApplication Input = "application"
	// InputProject is the AppProject.
	InputProject Input = "project"
	// InputDependency is another application that is named, that declares the same object, or that deletions wait for.
	InputDependency Input = "dependency"
	// InputSettings are the settings of argocd-cm that say how objects are marked.
	InputSettings Input = "settings"
	// InputSecret are credentials, hosts and authorities of repositories.
	InputSecret Input = "secret"
	// InputRepository is what the refs and versions of a source, or of a source that templates name, lead to.
	InputRepository Input = "repository"
	// InputFiles are the files that a rendering read.
	InputFiles Input = "files"
	// InputCluster is what the cluster serves: its version, kinds and schemas.
	InputCluster Input = "cluster"
	// InputLive are the live objects that are declared or owned.
	InputLive Input = "live"
)

// Inputs are all of them.
func Inputs() []Input {
	return []Input{
		InputApplication, InputProject, InputSettings, InputDependency, InputSecret, InputRepository, InputFiles, InputCluster,
		InputLive,
	}
}

// rouse wakes an application because one of its inputs has changed.
func (e *Engine) rouse(in Input, key string, p queue.Priority) {
	if e.hears(in) {
		e.queue.Add(key, p)
	}
}

// hears is false for an input that a test has made the engine deaf to.
func (e *Engine) hears(in Input) bool {
	_, deaf := e.deaf.Load(in)
	return !deaf
}
