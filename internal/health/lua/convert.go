package lua

import (
	gopher "github.com/yuin/gopher-lua"

	"github.com/lockstep-cd/lockstep/internal/field"
)

// toLua is a value of an object as Lua has it: lists begin at 1, and a null is not there.
func toLua(l *gopher.LState, value any) gopher.LValue {
	switch v := value.(type) {
	case string:
		return gopher.LString(v)
	case bool:
		return gopher.LBool(v)
	case int64:
		return gopher.LNumber(v)
	case int:
		return gopher.LNumber(v)
	case float64:
		return gopher.LNumber(v)
	case []any:
		list := l.CreateTable(len(v), 0)
		for _, element := range v {
			list.Append(toLua(l, element))
		}
		return list
	case field.Map:
		return toLua(l, map[string]any(v))
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for name, element := range v {
			table.RawSetString(name, toLua(l, element))
		}
		return table
	}
	return gopher.LNil
}
