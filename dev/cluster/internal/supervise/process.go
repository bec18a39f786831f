package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// spawner starts processes from one operating-system thread that lives as long as the
// supervisor. Linux ties "die with the parent" to the thread that started the child,
// so a child started from a passing thread would die with that thread.
type spawner struct{ jobs chan func() }

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	s.jobs <- func() { done <- cmd.Start() }
	return <-done
}

// process is one component: started, killed, frozen and started again at will.
type process struct {
	name string
	args []string
	dir  string
	env  []string
	log  io.Writer

	spawner *spawner

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	exit   error
	frozen bool
	// wanted is false while the process is down on purpose.
	wanted bool
	// done forbids further starts: the cluster ends.
	done   bool
	starts int
}

// start starts the process when it does not run.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return fmt.Errorf("%s: start: the cluster is ending", p.name)
	}
	p.wanted = true
	if p.running() {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("%s: own executable: %w", p.name, err)
	}
	cmd := exec.Command(self, p.args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = childAttributes()
	if err := p.spawner.start(cmd); err != nil {
		return fmt.Errorf("%s: start: %w", p.name, err)
	}
	exited := make(chan struct{})
	p.cmd, p.exited, p.exit, p.frozen = cmd, exited, nil, false
	p.starts++
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.exit = err
		p.mu.Unlock()
		close(exited)
	}()
	return nil
}

// running reports whether the process lives. The lock is held.
func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop ends the process, first with SIGTERM when grace is positive, and waits for it.
func (p *process) stop(grace time.Duration) error {
	p.mu.Lock()
	p.wanted = false
	if !p.running() {
		p.mu.Unlock()
		return nil
	}
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if grace > 0 {
		if err := signalProcess(cmd, syscall.SIGTERM); err != nil {
			return fmt.Errorf("%s: stop: %w", p.name, err)
		}
		select {
		case <-exited:
			return nil
		case <-time.After(grace):
		}
	}
	// SIGKILL reaches frozen processes too.
	if err := signalProcess(cmd, syscall.SIGKILL); err != nil {
		return fmt.Errorf("%s: kill: %w", p.name, err)
	}
	<-exited
	return nil
}

// finish is stop for good.
func (p *process) finish(grace time.Duration) error {
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	return p.stop(grace)
}

func (p *process) freeze(yes bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("%s: not running", p.name)
	}
	sig := syscall.SIGCONT
	if yes {
		sig = syscall.SIGSTOP
	}
	if err := signalProcess(p.cmd, sig); err != nil {
		return fmt.Errorf("%s: signal: %w", p.name, err)
	}
	p.frozen = yes
	return nil
}

func signalProcess(cmd *exec.Cmd, sig syscall.Signal) error {
	err := cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// state describes the process for users.
func (p *process) state() ComponentStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := ComponentStatus{Name: p.name, Starts: p.starts, State: "stopped"}
	switch {
	case p.running() && p.frozen:
		s.State, s.PID = "frozen", p.cmd.Process.Pid
	case p.running():
		s.State, s.PID = "running", p.cmd.Process.Pid
	case p.wanted && p.exit != nil:
		s.State = "failed: " + p.exit.Error()
	}
	return s
}
