package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
)

// Bound is what ended a worker.
type Bound string

// What ends a worker before its rendering is done.
const (
	// Time, CPU and Memory are the bounds of the options.
	Time   Bound = "time"
	CPU    Bound = "cpu"
	Memory Bound = "memory"
	// Stack and Threads are bounds of the worker itself.
	Stack   Bound = "stack"
	Threads Bound = "threads"
	// Reads is the bound of what a rendering may read.
	Reads Bound = "reads"
	// Garbage is a worker that does not keep to the conversation.
	Garbage Bound = "garbage"
	// Broken is a renderer that broke down.
	Broken Bound = "broken"
	// Lost is a worker that ended by itself, or was ended by somebody else.
	Lost Bound = "lost"
)

// Failure is a rendering that was ended, with the reason. Another try may help where it is job.ErrInterrupted.
type Failure struct {
	Bound  Bound
	reason string
}

// Error is the sentence.
func (f *Failure) Error() string { return f.reason }

// Is tells whether trying again may help: a machine that is short of memory or busy passes, a template that recurses does
// not.
func (f *Failure) Is(target error) bool {
	return target == job.ErrInterrupted && (f.Bound == Lost || f.Bound == Time)
}

func failure(b Bound, format string, args ...any) *Failure {
	return &Failure{Bound: b, reason: fmt.Sprintf(format, args...)}
}

const simplify = "simplify its templates, or split the application"

func tooLong(limit time.Duration) *Failure {
	return failure(Time, "rendering was stopped after %s; %s", limit, simplify)
}

// verdict says why a worker has ended that was not ended by us. What the Go runtime prints at its end is read here and
// nowhere else.
func (w *process) verdict(o Options) *Failure {
	<-w.ended
	last := w.said.String()
	says := func(any ...string) bool {
		return slices.ContainsFunc(any, func(text string) bool { return strings.Contains(last, text) })
	}
	const noMemory = "errno=12" // ENOMEM, for the stack of a thread
	switch {
	case w.code == worker.ExitCPU, w.used >= w.mayUse:
		return failure(CPU, "rendering was stopped after %s of processor time; %s", o.CPU, simplify)
	case says("out of memory", "cannot allocate memory", "page summary memory", "pthread_create failed", noMemory):
		return failure(Memory, "rendering needs more than %d MB of memory; %s", o.Memory>>20, simplify)
	case says("stack overflow", "stack exceeds"):
		return failure(Stack, "rendering recurses without end; look for a template that includes itself")
	case says("thread exhaustion", "failed to create new OS thread"):
		return failure(Threads, "rendering starts too many threads")
	}
	return failure(Lost, "the worker that rendered was lost (%s), perhaps because the machine is out of memory; it is tried again", w.status)
}
