package jsonnet

import (
	"errors"
	"slices"
	"strings"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/ast"

	"github.com/lockstep-cd/lockstep/internal/render/job"
)

// formatter keeps the error that go-jsonnet would turn into text: the text has lost where it happened.
type formatter struct{ last error }

// Format implements jsonnet.ErrorFormatter.
func (f *formatter) Format(err error) string {
	f.last = err
	return err.Error()
}

// SetMaxStackTraceSize implements jsonnet.ErrorFormatter; there is no trace.
func (f *formatter) SetMaxStackTraceSize(int) {}

// SetColorFormatter implements jsonnet.ErrorFormatter; there is no colour.
func (f *formatter) SetColorFormatter(jsonnet.ColorFormatter) {}

// explain gives the error of an evaluation of file its place: that of the innermost call which lies in a file.
func (f *formatter) explain(file string, err error) error {
	if f.last != nil {
		err = f.last
	}
	out := &job.Error{File: file, Reason: strings.TrimPrefix(err.Error(), "RUNTIME ERROR: ")}
	var static interface{ Loc() ast.LocationRange }
	var runtime jsonnet.RuntimeError
	switch {
	case errors.As(err, &static):
		place(out, static.Loc())
		// The text of a static error starts with its place.
		if _, rest, ok := strings.Cut(out.Reason, " "); ok && strings.HasPrefix(out.Reason, static.Loc().FileName+":") {
			out.Reason = rest
		}
	case errors.As(err, &runtime):
		// The innermost call is the last one. The standard library and messages have no line in a file.
		for _, frame := range slices.Backward(runtime.StackTrace) {
			if frame.Loc.Begin.Line > 0 && !strings.HasPrefix(frame.Loc.FileName, "<") && frame.Loc.FileName != "" {
				place(out, frame.Loc)
				break
			}
		}
	}
	out.Reason, _, _ = strings.Cut(out.Reason, "\n")
	return out
}

func place(e *job.Error, at ast.LocationRange) {
	if at.FileName != "" && at.Begin.Line > 0 {
		e.File, e.Line = at.FileName, at.Begin.Line
	}
}
