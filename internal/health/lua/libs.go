package lua

import (
	"strings"

	gopher "github.com/yuin/gopher-lua"
)

// openLibs gives a run the harmless part of Lua's libraries.
func (m *meter) openLibs(l *gopher.LState) {
	open := func(name string, loader gopher.LGFunction) *gopher.LTable {
		l.Push(l.NewFunction(loader))
		l.Push(gopher.LString(name))
		l.Call(1, 1)
		table, _ := l.Get(-1).(*gopher.LTable)
		l.Pop(1)
		return table
	}
	open(gopher.BaseLibName, gopher.OpenBase)
	// These load code, print, reach the machine itself, or hand out the functions that count.
	for _, name := range []string{
		"collectgarbage", "dofile", "load", "loadfile", "loadstring", "module", "newproxy", "print", "require", "getfenv",
		"setfenv", "_printregs", "_G", "_GOPHER_LUA_VERSION",
	} {
		l.SetGlobal(name, gopher.LNil)
	}
	m.wrap(l, l.G.Global, "rawset", func(l *gopher.LState) int64 { return setCost + m.growth(l.Get(1), l.Get(2)) })

	text := open(gopher.StringLibName, gopher.OpenString)
	text.RawSetString("dump", gopher.LNil)
	for name, cost := range textCosts() {
		m.wrap(l, text, name, cost)
	}
	table := open(gopher.TabLibName, gopher.OpenTable)
	m.wrap(l, table, "concat", concatCost)
	m.wrap(l, table, "insert", func(l *gopher.LState) int64 {
		if l.GetTop() < 3 {
			return setCost
		}
		return setCost + m.growth(l.Get(1), l.Get(2))
	})
	open(gopher.MathLibName, gopher.OpenMath)

	system := open(gopher.OsLibName, gopher.OpenOs)
	clock := l.NewTable()
	for _, name := range []string{"time", "date", "clock", "difftime"} {
		clock.RawSetString(name, system.RawGetString(name))
	}
	m.wrap(l, clock, "date", argumentsCost)
	l.SetGlobal(gopher.OsLibName, clock)
}

// wrap makes a function count what it will take before it runs.
func (m *meter) wrap(l *gopher.LState, table *gopher.LTable, name string, cost func(*gopher.LState) int64) {
	original, ok := table.RawGetString(name).(*gopher.LFunction)
	if !ok {
		return
	}
	table.RawSetString(name, l.NewFunction(func(l *gopher.LState) int {
		m.checkTime()
		m.charge(l, cost(l))
		return original.GFunction(l)
	}))
}

// textCosts are the most that the functions of the string library can take, in bytes.
func textCosts() map[string]func(*gopher.LState) int64 {
	return map[string]func(*gopher.LState) int64{
		"rep":     func(l *gopher.LState) int64 { return size(l.Get(1)) * max(0, int64(l.OptNumber(2, 0))) },
		"format":  formatCost,
		"lower":   argumentsCost,
		"upper":   argumentsCost,
		"reverse": argumentsCost,
		"char":    argumentsCost,
		"find": func(l *gopher.LState) int64 {
			if !gopher.LVAsBool(l.Get(4)) {
				checkPattern(l)
			}
			return 0
		},
		"match":  func(l *gopher.LState) int64 { checkPattern(l); return argumentsCost(l) },
		"gmatch": func(l *gopher.LState) int64 { checkPattern(l); return argumentsCost(l) },
		"gfind":  func(l *gopher.LState) int64 { checkPattern(l); return argumentsCost(l) },
		"gsub":   replaceCost,
	}
}

// argumentsCost is the size of all arguments.
func argumentsCost(l *gopher.LState) int64 {
	total := int64(l.GetTop())
	for i := 1; i <= l.GetTop(); i++ {
		total += size(l.Get(i))
	}
	return total
}

func size(value gopher.LValue) int64 {
	if text, ok := value.(gopher.LString); ok {
		return int64(len(text))
	}
	return 32
}

// formatCost adds the widths that a format asks for to its arguments.
func formatCost(l *gopher.LState) int64 {
	total, width := argumentsCost(l), int64(0)
	for _, c := range l.OptString(1, "") {
		if c < '0' || c > '9' {
			total, width = total+width, 0
			continue
		}
		width = min(width*10+int64(c-'0'), 1<<40)
	}
	return total + width
}

// concatCost is the size of the list's elements, as often as they are in it.
func concatCost(l *gopher.LState) int64 {
	total := int64(0)
	if list, ok := l.Get(1).(*gopher.LTable); ok {
		separator := size(l.Get(2))
		list.ForEach(func(_, value gopher.LValue) { total += size(value) + separator })
	}
	return total
}

// maxSteps bounds what a pattern may try at worst: about a second.
const maxSteps = 1e8

// checkPattern refuses a pattern that could take for ever on a text: each part that repeats multiplies what there is to try
// by the length of the text, and the machine can not be stopped within.
func checkPattern(l *gopher.LState) {
	text, pattern := l.OptString(1, ""), l.OptString(2, "")
	steps, length := float64(len(text)+1), float64(len(text)+1)
	for range strings.Count(pattern, "*") + strings.Count(pattern, "+") + strings.Count(pattern, "-") {
		steps *= length
	}
	// Each optional part doubles it.
	for range strings.Count(pattern, "?") {
		steps *= 2
	}
	if steps > maxSteps {
		l.RaiseError("the pattern has too many repetitions for a text of %d bytes", len(text))
	}
}

// replaceCost is the most that gsub can make: the replacement at every place.
func replaceCost(l *gopher.LState) int64 {
	checkPattern(l)
	text, longest := size(l.Get(1)), int64(0)
	switch replacement := l.Get(3).(type) {
	case *gopher.LTable:
		replacement.ForEach(func(_, value gopher.LValue) { longest = max(longest, size(value)) })
	case *gopher.LFunction:
		// What a function will return is not known; it is kept short instead.
		l.Replace(3, l.NewFunction(func(l *gopher.LState) int {
			captures := l.GetTop()
			l.Push(replacement)
			for i := 1; i <= captures; i++ {
				l.Push(l.Get(i))
			}
			l.Call(captures, 1)
			if size(l.Get(-1)) > maxKey {
				l.RaiseError("a replacement has more than %d bytes", maxKey)
			}
			return 1
		}))
		longest = maxKey
	default:
		// %1 and its kind put in what was found, which is no longer than the text in all.
		longest = size(replacement) * (1 + int64(strings.Count(replacement.String(), "%"))*text)
		return min(text+1, occurrences(l))*longest + text
	}
	return (text+1)*longest + text
}

// occurrences bounds how often gsub replaces, where the script says so.
func occurrences(l *gopher.LState) int64 {
	if n, ok := l.Get(4).(gopher.LNumber); ok && n >= 0 {
		return int64(n)
	}
	return 1 << 40
}
