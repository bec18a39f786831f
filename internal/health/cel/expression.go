// Package cel owns the expressions in the Common Expression Language with which people decide the health of a kind, beside
// scripts in Lua: one expression that yields the status, or a map with status and message, or null for an object that has no
// health. An expression always ends and reads nothing but the object.
package cel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/lockstep-cd/lockstep/api/v1alpha1"
	"github.com/lockstep-cd/lockstep/internal/health"
	"github.com/lockstep-cd/lockstep/internal/steady"
)

// prefix of the settings keys of expressions.
const prefix = "health.cel."

// maxSource is the length of the longest expression, in bytes.
const maxSource = 16 << 10

// Limits are those of one evaluation. A zero field is its default.
type Limits struct {
	// Time is how long it may last; 1 s by default.
	Time time.Duration
	// Cost is how much it may do, in the steps of CEL's own count; 1,000,000 by default. It bounds memory, too: what makes
	// texts and lists costs by their size.
	Cost uint64
}

func (l Limits) withDefaults() Limits {
	if l.Time <= 0 {
		l.Time = time.Second
	}
	if l.Cost == 0 {
		l.Cost = 1_000_000
	}
	return l
}

// Expression is a compiled expression. It may be evaluated many times at once.
type Expression struct {
	name    string
	program cel.Program
	limits  Limits
}

// Compile reads an expression over the variable obj. Its name, for instance the settings key, begins every error.
func Compile(name, source string, limits Limits) (*Expression, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("%s: the expression has %d bytes; %d are allowed", name, len(source), maxSource)
	}
	limits = limits.withDefaults()
	env, err := cel.NewEnv(cel.Variable("obj", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ast, issues := env.Compile(source)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%s: %s", name, sentence(issues))
	}
	const between = 100 // steps between two looks at the clock
	program, err := env.Program(ast, cel.CostLimit(limits.Cost), cel.InterruptCheckFrequency(between))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Expression{name: name, program: program, limits: limits}, nil
}

// sentence is the first complaint of the compiler in one line.
func sentence(issues *cel.Issues) string {
	for _, issue := range issues.Errors() {
		return fmt.Sprintf("line %d, column %d: %s", issue.Location.Line(), issue.Location.Column()+1, steady.Message(issue.Message))
	}
	return steady.Message(issues.Err().Error())
}

// Health evaluates the expression on an object; false means that it says the object has no health.
func (e *Expression) Health(ctx context.Context, object map[string]any) (v1alpha1.HealthStatus, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.Time)
	defer cancel()
	value, _, err := e.program.ContextEval(ctx, map[string]any{"obj": object})
	if err != nil {
		return v1alpha1.HealthStatus{}, false, fmt.Errorf("%s: %s", e.name, e.failure(ctx, err))
	}
	if value == types.NullValue {
		return v1alpha1.HealthStatus{}, false, nil
	}
	status, message, err := answer(value)
	if err != nil {
		return v1alpha1.HealthStatus{}, false, fmt.Errorf("%s: %w", e.name, err)
	}
	result, err := health.Answer(status, message)
	if err != nil {
		return v1alpha1.HealthStatus{}, false, fmt.Errorf("%s: %w", e.name, err)
	}
	return result, true, nil
}

// failure says why an evaluation gave nothing.
func (e *Expression) failure(ctx context.Context, err error) string {
	var stopped interpreter.EvalCancelledError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "it ran longer than " + e.limits.Time.String()
	case errors.As(err, &stopped) && stopped.Cause == interpreter.CostLimitExceeded:
		return fmt.Sprintf("it did more than %d steps", e.limits.Cost)
	}
	return steady.Message(err.Error())
}

// answer reads what an expression yields.
func answer(value ref.Val) (status, message string, err error) {
	if text, ok := value.Value().(string); ok {
		return text, "", nil
	}
	parts, ok := value.(interface {
		Find(key ref.Val) (ref.Val, bool)
	})
	if !ok {
		return "", "", fmt.Errorf("it yields a %s; yield a status, or a map with status and message", value.Type().TypeName())
	}
	texts := [2]string{}
	for i, name := range []string{"status", "message"} {
		if part, ok := parts.Find(types.String(name)); ok {
			texts[i], _ = part.Value().(string)
		}
	}
	return texts[0], texts[1], nil
}

// Overrides compiles the expressions of the settings health.cel.<group>_<Kind>; a kind without group is <Kind> alone, and *
// stands for any characters. Expressions that can not be compiled are left out and told as errors, one for each.
func Overrides(settings map[string]string, limits Limits) ([]health.Override, []error) {
	var (
		overrides []health.Override
		errs      []error
	)
	for _, name := range health.Names(settings, prefix) {
		expression, err := Compile(prefix+name, settings[prefix+name], limits)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		overrides = append(overrides, health.OverrideFor(name, expression))
	}
	return overrides, errs
}
