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

// ErrEnded is in every error about a program that ended although nobody asked for it.
var ErrEnded = errors.New("ended by itself")

// Process is a program that runs beside this one, with its output in a file.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	// exited is closed when it has ended; err is then why, nil when it said that all is well.
	exited chan struct{}
	err    error
	once   sync.Once
}

// Start starts cmd with its error stream, and its output unless that is taken already, at the end of the file log. The
// program gets a session of its own, so that Ctrl-C reaches it through Stop only and things end in order. It ends with this
// program, however that ends, where the system can do that.
func Start(name string, cmd *exec.Cmd, log string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: log: %w", name, err)
	}
	defer func() { _ = f.Close() }() // the program has its own
	cmd.Stderr = f
	if cmd.Stdout == nil {
		cmd.Stdout = f
	}
	cmd.SysProcAttr = attributes()
	p := &Process{name: name, log: log, cmd: cmd, exited: make(chan struct{})}
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
		return nil, fmt.Errorf("%s: start: %w", name, err)
	}
	return p, nil
}

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Pid of the program.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Ended waits for the end of the program and describes it as one that nobody asked for, with the end of its log.
func (p *Process) Ended() error {
	<-p.exited
	err := p.err
	if err == nil {
		err = errors.New("without an error")
	}
	return fmt.Errorf("%s: %w (%w); its last words:\n%s", p.name, ErrEnded, err, Tail(p.log, 15))
}

// Kill ends the program at once, as a crash does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

// Stop asks the program to end and waits for it. One that needs longer than limit is killed, which is an error, as is an
// end with an error. A second call does nothing.
func (p *Process) Stop(limit time.Duration) error {
	var late error
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-p.exited:
		case <-timer.C:
			p.Kill()
			late = fmt.Errorf("%s: did not end within %s", p.name, limit)
		}
	})
	if late != nil {
		return late
	}
	if <-p.exited; p.err != nil {
		return fmt.Errorf("%s: %w; its last words:\n%s", p.name, p.err, Tail(p.log, 5))
	}
	return nil
}
