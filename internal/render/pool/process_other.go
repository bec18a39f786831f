//go:build !linux

package pool

import (
	"math"
	"os"
	"syscall"
	"time"
)

func ownProgram() (string, error) { return os.Executable() }

// attributes are none: a worker ends with us since its input does.
func attributes() *syscall.SysProcAttr { return nil }

func (l *launcher) run() { l.serve() }

// allow can not bound processor time here; the bound of time remains.
func (w *process) allow(time.Duration) { w.mayUse = math.MaxInt64 }
