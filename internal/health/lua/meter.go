package lua

import (
	"context"
	"fmt"

	gopher "github.com/yuin/gopher-lua"
)

// meter counts what a run uses. It is the context of the run, since the machine asks the context before each instruction
// whether to stop: that is where instructions are counted. Once it has stopped it stays so, whatever the script catches.
type meter struct {
	context.Context
	limits       Limits
	instructions int64
	memory       int64
	err          error
	never, now   chan struct{}
}

func newMeter(ctx context.Context, limits Limits) *meter {
	now := make(chan struct{})
	close(now)
	return &meter{Context: ctx, limits: limits, never: make(chan struct{}), now: now}
}

// checkEvery is after how many instructions the clock is looked at.
const checkEvery = 256

// Done counts an instruction.
func (m *meter) Done() <-chan struct{} {
	m.instructions++
	if m.instructions > m.limits.Instructions {
		m.stop(fmt.Errorf("it ran more than %d instructions", m.limits.Instructions))
	}
	if m.instructions%checkEvery == 0 {
		m.checkTime()
	}
	if m.err != nil {
		return m.now
	}
	return m.never
}

// Err is why the run has stopped.
func (m *meter) Err() error { return m.err }

func (m *meter) checkTime() {
	switch m.Context.Err() {
	case nil:
	case context.DeadlineExceeded:
		m.stop(fmt.Errorf("it ran longer than %s", m.limits.Time))
	default:
		m.stop(m.Context.Err())
	}
}

func (m *meter) stop(err error) {
	if m.err == nil {
		m.err = err
	}
}

// charge counts memory before it is taken, and ends the run when there is none left.
func (m *meter) charge(l *gopher.LState, bytes int64) {
	if bytes > m.limits.Memory-m.memory {
		m.stop(fmt.Errorf("it needs more than %d bytes of memory", m.limits.Memory))
		l.RaiseError("%s", m.err.Error())
	}
	m.memory += bytes
}

// What tables and functions count, in bytes: roughly what they take.
const (
	newCost = 160
	setCost = 64
	// maxKey is the highest number by which a table may be built or, beside others, assigned at once: the machine fills a
	// list up to it.
	maxKey = 1024
)

// The functions that rewritten scripts call. No script can name them: an identifier has no space.
const (
	concatName = " concat"
	newName    = " new"
	setName    = " set"
	keyName    = " key"
)

// install gives the machine the functions that rewritten scripts call.
func (m *meter) install(l *gopher.LState) {
	l.SetGlobal(concatName, l.NewFunction(m.concat))
	l.SetGlobal(newName, l.NewFunction(func(l *gopher.LState) int {
		m.charge(l, newCost)
		return 1
	}))
	l.SetGlobal(setName, l.NewFunction(m.set))
	l.SetGlobal(keyName, l.NewFunction(func(l *gopher.LState) int {
		m.charge(l, setCost)
		if n, ok := l.Get(1).(gopher.LNumber); ok && n > maxKey {
			l.RaiseError("%s is too high a number for a key here", n.String())
		}
		return 1
	}))
}

// concat joins two texts.
func (m *meter) concat(l *gopher.LState) int {
	left, right := l.Get(1), l.Get(2)
	for _, value := range []gopher.LValue{left, right} {
		if t := value.Type(); t != gopher.LTString && t != gopher.LTNumber {
			l.RaiseError("attempt to concatenate a %s value", t.String())
		}
	}
	a, b := left.String(), right.String()
	m.charge(l, int64(len(a)+len(b)))
	l.Push(gopher.LString(a + b))
	return 1
}

// set assigns one element of a table.
func (m *meter) set(l *gopher.LState) int {
	m.charge(l, setCost+m.growth(l.Get(1), l.Get(2)))
	l.SetTable(l.Get(1), l.Get(2), l.Get(3))
	return 0
}

// growth is what a list grows by when an element far behind its end is set: the machine fills the gap.
func (m *meter) growth(table, key gopher.LValue) int64 {
	list, ok := table.(*gopher.LTable)
	n, isNumber := key.(gopher.LNumber)
	if !ok || !isNumber || n <= 0 || n > gopher.LNumber(gopher.MaxArrayIndex) {
		return 0
	}
	const element = 16
	return max(0, int64(n)-int64(list.MaxN())) * element
}
