package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a program that runs beside this one, with its output in a file.
type Process struct {
	name string
	cmd  *exec.Cmd
	// exited is closed when it has ended; err is then why, nil for a stop that was asked for.
	exited chan struct{}
	err    error
	once   sync.Once
}

// start starts cmd. The program gets a process group of its own, so that Ctrl-C reaches it through Stop only and things
// end in order.
func start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, cmd: cmd, exited: make(chan struct{})}
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		// The system ends a child with the thread that started it, so this thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Pid of the program.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// ended describes an end that nobody asked for.
func (p *Process) ended(log string) error {
	err := p.err
	if err == nil {
		err = errors.New("without an error")
	}
	return fmt.Errorf("%s: ended by itself (%w); its last words:\n%s", p.name, err, Tail(log, 15))
}

// Stop asks the program to end, ends it after limit and waits for it. A second call does nothing.
func (p *Process) Stop(limit time.Duration) {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-p.exited:
		case <-timer.C:
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
	})
}

// logFile makes the file that a process writes to.
func logFile(path string, cmd *exec.Cmd) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = f
	return f, nil
}
