// Package child owns the benchmark's helper processes: the program starts itself again in another role and talks to it in
// JSON values over its standard streams. A helper ends when its input ends, so none outlives the benchmark.
//
// It may depend on the standard library alone.
package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopLimit is how long a helper may take to end after its input has ended.
const stopLimit = 10 * time.Second

// Process is a running helper.
type Process struct {
	role string
	cmd  *exec.Cmd
	pipe io.Closer
	in   *json.Encoder
	out  *json.Decoder
}

// Start starts this program again with role as its only argument and sends config as the first value.
func Start(role string, config any) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%s: own executable: %w", role, err)
	}
	cmd := exec.Command(self, role)
	cmd.Stderr = os.Stderr
	// A session of its own, so that Ctrl-C reaches the benchmark alone, which then ends everything in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: input: %w", role, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: output: %w", role, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: start: %w", role, err)
	}
	p := &Process{role: role, cmd: cmd, pipe: in, in: json.NewEncoder(in), out: json.NewDecoder(out)}
	if err := p.Send(config); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Send sends one value.
func (p *Process) Send(v any) error {
	if err := p.in.Encode(v); err != nil {
		return fmt.Errorf("%s: send: %w", p.role, err)
	}
	return nil
}

// Receive waits for the next value.
func (p *Process) Receive(v any) error {
	if err := p.out.Decode(v); err != nil {
		return fmt.Errorf("%s: receive: %w", p.role, err)
	}
	return nil
}

// Stop ends the helper's input, waits for its end and kills it when that takes too long.
func (p *Process) Stop() error {
	_ = p.pipe.Close()
	kill := time.AfterFunc(stopLimit, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.role, err)
	}
	return nil
}
