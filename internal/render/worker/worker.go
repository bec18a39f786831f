// Package worker owns the child side of a rendering: a process that builds the walls of internal/sandbox around itself and
// then renders what its parent sends, one source at a time, asking the parent for every file (DESIGN.md §2.2). It holds no
// credentials, no network and no file system.
//
// It imports the renderers and the conversation, never the pool.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	_ "time/tzdata" // templates name time zones, and there is no file system to look them up in

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/render"
	"github.com/lockstep-cd/lockstep/internal/render/job"
	"github.com/lockstep-cd/lockstep/internal/render/wire"
	"github.com/lockstep-cd/lockstep/internal/sandbox"
	"github.com/lockstep-cd/lockstep/internal/tree"
)

// Role is the argument that makes a process a worker.
const Role = "render-worker"

// ExitCPU is the exit code of a worker whose processor time is used up.
const ExitCPU = 77

const (
	// maxThreads bounds the threads of a worker; the Go runtime ends the process beyond.
	maxThreads = 100
	// maxStack bounds the stack of a goroutine, in bytes.
	maxStack = 64 << 20
)

// Renderer renders with a tool that was chosen before.
type Renderer func(ctx context.Context, tool v1alpha1.ApplicationSourceType, in job.Input) (job.Output, error)

// Branch makes this process a worker when it was started as one, and does not return then. It is called first of all in
// main, so that nothing else was opened or started. A nil renderer is render.Run; tests have others.
func Branch(renderer Renderer) {
	if len(os.Args) != 2 || os.Args[1] != Role {
		return
	}
	if renderer == nil {
		renderer = render.Run
	}
	conn := wire.NewConn(os.Stdin, os.Stdout)
	// What libraries print must not get between the frames.
	os.Stdout = os.Stderr
	obeyLimits()
	debug.SetMaxThreads(maxThreads)
	debug.SetMaxStack(maxStack)
	if err := serve(conn, renderer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve works until the parent has no more to do.
func serve(conn *wire.Conn, renderer Renderer) error {
	if err := begin(conn); err != nil {
		return err
	}
	for {
		k, d, err := conn.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case k != wire.Render:
			return wire.ErrGarbage
		}
		task, err := wire.DecodeTask(d)
		if err != nil {
			return err
		}
		if err := work(conn, renderer, task); err != nil {
			return err
		}
	}
}

// begin builds the walls and tells the parent whether they stand.
func begin(conn *wire.Conn) error {
	k, d, err := conn.Receive()
	if err != nil || k != wire.Setup {
		return errors.Join(wire.ErrGarbage, err)
	}
	start, err := wire.DecodeStart(d)
	if err != nil {
		return err
	}
	if start.Version != wire.Version {
		return fmt.Errorf("parent speaks version %d, not %d", start.Version, wire.Version)
	}
	greeting := wire.Greeting{Version: wire.Version}
	missing, err := sandbox.Enter(sandbox.Options{Memory: start.Memory, BestEffort: start.BestEffort})
	if greeting.Missing = missing; err != nil {
		greeting.Refused = err.Error()
	}
	return errors.Join(err, conn.Send(wire.Ready, greeting.Encode))
}

// work makes one rendering and sends what it came to.
func work(conn *wire.Conn, renderer Renderer, task wire.Task) error {
	s := &session{conn: conn}
	in := task.Input
	in.Fetch = s
	in.Tree = s.tree(0)
	in.Refs = make(map[string]tree.FS, len(task.Refs))
	for i, name := range task.Refs {
		in.Refs[name] = s.tree(1 + i)
	}
	s.take(task.Ahead)
	// A rendering has no deadline of its own: the parent ends the process.
	out, err := guarded(context.Background(), renderer, task.Tool, in)
	if s.lost != nil {
		return s.lost
	}
	if err == nil {
		if err = conn.Send(wire.Done, wire.Result{Output: out, Used: s.used}.Encode); err == nil {
			return nil
		}
		if !errors.Is(err, wire.ErrTooLarge) {
			return err
		}
		err = &job.Error{File: in.Path, Reason: fmt.Sprintf("renders to more than the %d bytes that are allowed", job.MaxRendered)}
	}
	refusal := wire.NewRefusal(err)
	refusal.Used = s.used
	var broken *brokenError
	refusal.Broken = errors.As(err, &broken)
	return conn.Send(wire.Failed, refusal.Encode)
}

// brokenError is a panic of a renderer.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// guarded renders; a panic of a library is an error of this one rendering.
func guarded(ctx context.Context, renderer Renderer, tool v1alpha1.ApplicationSourceType, in job.Input) (out job.Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &brokenError{fmt.Sprintf("the renderer broke down: %v (please report it): %s", p, frames(debug.Stack()))}
		}
	}()
	return renderer(ctx, tool, in)
}

// frames are the first lines of a stack, on one line.
func frames(stack []byte) string {
	const lines = 11
	list := strings.SplitN(string(stack), "\n", lines+1)
	return strings.Join(list[:min(len(list), lines)], " | ")
}
