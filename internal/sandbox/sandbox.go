// Package sandbox owns the walls around a process that runs what strangers wrote (DESIGN.md §2.2): no file system, no
// network, no other program, bounded memory. It is called by the process itself, once, before it reads anything of theirs,
// and works on Linux only. It imports nothing of ours.
package sandbox

import (
	"errors"
	"fmt"
)

// Options of the walls.
type Options struct {
	// Memory is what the process may allocate beyond what it has now, in bytes; 0 sets no bound.
	Memory int64
	// BestEffort goes on without a wall that the system can not build.
	BestEffort bool
}

// ErrUnsupported is the kind of errors that say what the system lacks for a wall.
var ErrUnsupported = errors.New("the sandbox can not be built here")

// lack is an ErrUnsupported; its text is the whole sentence.
type lack string

func (l lack) Error() string        { return string(l) }
func (l lack) Is(target error) bool { return target == ErrUnsupported }

func lacks(format string, args ...any) error { return lack(fmt.Sprintf(format, args...)) }

// Enter builds the walls around this process, all its threads and those to come, and tries them. It can not be undone.
//
// What stays is reading and writing open files, memory, threads, timers and exit. Everything else answers EPERM. Files
// other than standard input, output and error are closed before.
//
// With BestEffort it returns the sentences for the walls that are missing; without, the first one as an error that is
// ErrUnsupported.
func Enter(o Options) (missing []string, err error) {
	for _, w := range walls() {
		err := w(o)
		if err == nil {
			continue
		}
		if !o.BestEffort {
			return nil, err
		}
		missing = append(missing, err.Error())
	}
	return missing, nil
}
