// Package lua owns the scripts with which people decide the health of a kind, as Argo CD's settings
// resource.customizations.health.<group>_<Kind> have them. A script reads the global obj and returns a table with status
// and message, or nothing for an object that has no health.
//
// Scripts are not trusted: a run has a limit of time, of instructions and of memory, has no library unless it is asked for,
// and never reaches a file, the network, the environment or another run. It is pure: the same object gives the same answer,
// except where a script with libraries asks for the time.
package lua

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	gopher "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/health"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// maxSource is the length of the longest script, in bytes.
const maxSource = 128 << 10

// Limits are those of one run. A zero field is its default.
type Limits struct {
	// Time is how long a run may last; 1 s by default, as Argo CD has it.
	Time time.Duration
	// Instructions is how many instructions of the machine a run may take; 1,000,000 by default.
	Instructions int64
	// Memory is how many bytes of texts, tables and functions a run may make; 16 MiB by default. The object does not count.
	Memory int64
}

func (l Limits) withDefaults() Limits {
	if l.Time <= 0 {
		l.Time = time.Second
	}
	if l.Instructions <= 0 {
		l.Instructions = 1_000_000
	}
	if l.Memory <= 0 {
		l.Memory = 16 << 20
	}
	return l
}

// Options of a script.
type Options struct {
	// OpenLibs gives the script the harmless part of Lua's libraries: the base functions, string, table, math, and the clock
	// of os. It is the setting resource.customizations.useOpenLibs.<group>_<Kind>.
	OpenLibs bool
	Limits   Limits
}

// Script is a compiled script. It may run many times at once.
type Script struct {
	name    string
	proto   *gopher.FunctionProto
	options Options
}

// Compile reads a script. Its name, for instance the settings key, begins every error.
func Compile(name, source string, options Options) (*Script, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("%s: the script has %d bytes; %d are allowed", name, len(source), maxSource)
	}
	chunk, err := parse.Parse(strings.NewReader(source), "script")
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, syntaxSentence(err))
	}
	proto, err := gopher.Compile(rewriteBlock(chunk), "script")
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, sentence(err.Error()))
	}
	options.Limits = options.Limits.withDefaults()
	return &Script{name: name, proto: proto, options: options}, nil
}

// Health runs the script on an object; false means that it says the object has no health. The object is not changed.
func (s *Script) Health(ctx context.Context, object map[string]any) (v1alpha1.HealthStatus, bool, error) {
	value, err := s.run(ctx, object)
	if err != nil {
		return v1alpha1.HealthStatus{}, false, fmt.Errorf("%s: %w", s.name, err)
	}
	if value == gopher.LNil {
		return v1alpha1.HealthStatus{}, false, nil
	}
	answer, ok := value.(*gopher.LTable)
	if !ok {
		return v1alpha1.HealthStatus{}, false, fmt.Errorf("%s: it returned a %s; return a table with status and message", s.name, value.Type())
	}
	status, _ := answer.RawGetString("status").(gopher.LString)
	if status == "" && answer.RawGetString("message") == gopher.LNil {
		return v1alpha1.HealthStatus{}, false, nil
	}
	message := ""
	switch m := answer.RawGetString("message").(type) {
	case gopher.LString:
		message = string(m)
	case gopher.LNumber:
		message = m.String()
	}
	result, err := health.Answer(string(status), message)
	if err != nil {
		return v1alpha1.HealthStatus{}, false, fmt.Errorf("%s: %w", s.name, err)
	}
	return result, true, nil
}

// run is what the script returns.
func (s *Script) run(ctx context.Context, object map[string]any) (gopher.LValue, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Limits.Time)
	defer cancel()
	m := newMeter(ctx, s.options.Limits)
	l := gopher.NewState(gopher.Options{SkipOpenLibs: true, CallStackSize: 200, RegistrySize: 16 << 10})
	defer l.Close()
	l.SetContext(m) //nolint:contextcheck // the meter wraps ctx
	m.install(l)
	if s.options.OpenLibs {
		m.openLibs(l)
	}
	l.SetGlobal("obj", toLua(l, object))
	l.Push(l.NewFunctionFromProto(s.proto))
	err := l.PCall(0, 1, nil)
	if m.err != nil {
		return nil, m.err // also when the script caught it
	}
	if err != nil {
		var failure *gopher.ApiError
		if errors.As(err, &failure) && failure.Type == gopher.ApiErrorRun {
			return nil, errors.New(sentence(failure.Object.String()))
		}
		return nil, errors.New(sentence(err.Error()))
	}
	return l.Get(-1), nil
}

// place finds where in the script an error is.
var place = regexp.MustCompile(`^script:(\d+): `)

// sentence is an error of the machine in one line, without its stack.
func sentence(message string) string {
	message, _, _ = strings.Cut(message, "\nstack traceback:")
	return place.ReplaceAllString(steady.Message(message), "line $1: ")
}

// syntaxSentence is an error of the parser with its line.
func syntaxSentence(err error) string {
	var failure *parse.Error
	if errors.As(err, &failure) {
		if failure.Pos.Line < 0 { // the parser's mark for the end of the text
			return "the script ends too early"
		}
		return fmt.Sprintf("line %d: %s near %q", failure.Pos.Line, failure.Message, failure.Token)
	}
	return sentence(err.Error())
}
