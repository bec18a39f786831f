package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-cd/lockstep/internal/render/wire"
	"github.com/lockstep-cd/lockstep/internal/render/worker"
)

// process is one worker. Whoever got it from the pool uses it alone.
type process struct {
	cmd  *exec.Cmd
	kill func()
	conn *wire.Conn
	// stdin and stdout are our ends of its pipes; said is the last of what it printed.
	stdin, stdout io.Closer
	said          *tail
	missing       []string
	// project is the only one that it renders for; empty and zero renders fit every project.
	project   string
	renders   int
	idleSince time.Time
	// mayUse is the processor time of its life so far and of the rendering under way.
	mayUse time.Duration

	ended chan struct{}
	death // after ended
}

// death is how a process ended.
type death struct {
	code int
	// status is in words, used the processor time of its whole life.
	status string
	used   time.Duration
}

func (w *process) fits(project string) bool { return w.renders == 0 || w.project == project }

// dead tells that somebody has ended the worker while it had no work.
func (w *process) dead() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// end kills the worker, which may have ended by itself; ended follows. Whoever reads from it gets an error.
func (w *process) end() {
	w.kill()
	_ = w.stdout.Close()
}

// start starts a worker and waits until it stands behind its walls.
func (l *launcher) start(ctx context.Context) (*process, error) {
	w, err := l.launch()
	if err != nil {
		return nil, failure(Lost, "a worker can not be started: %v", err)
	}
	ready, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	stop := context.AfterFunc(ready, w.end)
	err = w.greet(l.o)
	stop()
	if err == nil {
		return w, nil
	}
	w.end()
	<-w.ended
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, ErrNoSandbox):
		return nil, err
	}
	return nil, failure(Lost, "a worker does not start (%s): %v %s", w.status, err, strings.TrimSpace(w.said.String()))
}

// lastWords is how long the pipes of a worker that has ended are read for what it printed.
const lastWords = 5 * time.Second

// startWithin bounds the start of a worker on a busy machine.
const startWithin = 30 * time.Second

// greet tells the worker its bounds and hears whether it is ready.
func (w *process) greet(o Options) error {
	start := wire.Start{Version: wire.Version, Memory: o.Memory, BestEffort: o.AllowUnsandboxed}
	if err := w.conn.Send(wire.Setup, start.Encode); err != nil {
		return err
	}
	k, d, err := w.conn.Receive()
	if err != nil {
		return err
	}
	g, err := wire.DecodeGreeting(d)
	switch {
	case err != nil || k != wire.Ready:
		return wire.ErrGarbage
	case g.Refused != "":
		return noSandbox(g.Refused)
	case g.Version != wire.Version:
		return fmt.Errorf("it speaks version %d, not %d", g.Version, wire.Version)
	}
	w.missing = g.Missing
	return nil
}

// launcher starts processes. It does so from one thread that stays: the kernel ends a worker with the thread that started
// it, not with the process.
type launcher struct {
	o        Options
	command  []string
	requests chan chan launched
	done     chan struct{}
}

type launched struct {
	w   *process
	err error
}

func newLauncher(o Options) (*launcher, error) {
	l := &launcher{o: o, command: o.Command, requests: make(chan chan launched), done: make(chan struct{})}
	if len(l.command) == 0 {
		self, err := ownProgram()
		if err != nil {
			return nil, fmt.Errorf("workers: this program's file is not known: %w", err)
		}
		l.command = []string{self, worker.Role}
	}
	go l.run()
	return l, nil
}

func (l *launcher) launch() (*process, error) {
	answer := make(chan launched, 1)
	select {
	case l.requests <- answer:
		got := <-answer
		return got.w, got.err
	case <-l.done:
		return nil, ErrClosed
	}
}

func (l *launcher) close() { close(l.done) }

// exec starts one worker: a clean environment, and no open files but three pipes.
func (l *launcher) exec() (*process, error) {
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), stdin.Close())
	}
	w := &process{stdin: stdin, stdout: stdout, said: &tail{}, ended: make(chan struct{})}
	w.cmd = &exec.Cmd{
		Path: l.command[0], Args: append([]string{"lockstep"}, l.command[1:]...), Env: environment(l.o),
		Stdin: theirIn, Stdout: theirOut, Stderr: w.said, SysProcAttr: attributes(), WaitDelay: lastWords,
	}
	err = w.cmd.Start()
	_ = theirIn.Close()
	_ = theirOut.Close()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), stdout.Close())
	}
	w.kill = func() { _ = w.cmd.Process.Kill() } // it may have ended by itself
	w.conn = wire.NewConn(stdout, stdin)
	go w.watch()
	return w, nil
}

// watch waits for the end of the process, which only the pool or the process itself brings about.
func (w *process) watch() {
	_ = w.cmd.Wait() // the state says the same
	s := w.cmd.ProcessState
	w.death = death{code: s.ExitCode(), status: s.String(), used: s.UserTime() + s.SystemTime()}
	_ = w.stdin.Close()
	close(w.ended) // what it sent last may still be read
}

// environment is all that a worker gets of one. The collector works harder as memory gets scarce; a crash prints one line.
func environment(o Options) []string {
	const softly = 4 // leave a quarter free
	return []string{
		fmt.Sprintf("GOMEMLIMIT=%d", o.Memory-o.Memory/softly), "GOMAXPROCS=2", "GOTRACEBACK=none", "TZ=UTC",
	}
}

// tail keeps the last of what a worker prints, up to the line with which the Go runtime gives up. It may hold what a template
// prints: it is never shown once the worker renders.
type tail struct {
	mu     sync.Mutex
	text   []byte
	closed bool
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return len(p), nil // the stacks of all goroutines
	}
	t.text = append(t.text, p...)
	if at := givesUp(t.text); at >= 0 {
		t.closed = true
		t.text = t.text[max(0, at-most/2):min(len(t.text), at+most/2)]
	} else if extra := len(t.text) - most; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// givesUp finds the line with which the Go runtime gives up, once it is whole.
func givesUp(text []byte) int {
	for _, line := range []string{"fatal error: ", "pthread_create failed"} {
		if at := bytes.Index(text, []byte(line)); at >= 0 && bytes.IndexByte(text[at:], '\n') >= 0 {
			return at
		}
	}
	return -1
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

func (l *launcher) serve() {
	for {
		select {
		case <-l.done:
			return
		case answer := <-l.requests:
			w, err := l.exec()
			answer <- launched{w, err}
		}
	}
}
