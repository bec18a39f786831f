// Package filelock owns locks that processes of one machine take on a file, and that the system gives back when a process
// ends, however it ends. What a lock guards is its taker's business.
//
// It imports nothing of ours.
package filelock

import "errors"

// ErrHeld says that another process, or another part of this one, holds the lock.
var ErrHeld = errors.New("is locked by another process")
