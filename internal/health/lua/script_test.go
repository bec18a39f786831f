package lua

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func object() map[string]any {
	return map[string]any{
		"kind":     "Widget",
		"metadata": map[string]any{"name": "web", "generation": int64(3)},
		"spec":     map[string]any{"replicas": int64(2), "paused": false},
		"status": map[string]any{
			"phase": "Ready", "ratio": 0.5, "nothing": nil,
			"conditions": []any{
				map[string]any{"type": "Ready", "status": "False", "message": "no such bucket"},
				map[string]any{"type": "Synced", "status": "True"},
			},
		},
	}
}

// run is what a script says, as text.
func run(t *testing.T, source string, options Options) string {
	t.Helper()
	script, err := Compile("s", source, options)
	if err != nil {
		return "error: " + err.Error()
	}
	obj := object()
	health, has, err := script.Health(context.Background(), obj)
	if diff := cmp.Diff(object(), obj); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	switch {
	case err != nil:
		return "error: " + err.Error()
	case !has:
		return "none"
	}
	return string(health.Status) + " " + health.Message
}

func TestScripts(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"fields", `return {status = obj.status.phase == "Ready" and "Healthy" or "Degraded", message = obj.metadata.name}`, "Healthy web"},
		{"a loop in Argo CD's manner", `
local hs = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for i = 1, #obj.status.conditions do
    local condition = obj.status.conditions[i]
    if condition.type == "Ready" and condition.status == "False" then
      hs.status = "Degraded"
      hs.message = condition.type .. ": " .. condition.message
      return hs
    end
  end
end
hs.status = "Progressing"
hs.message = "waiting"
return hs`, "Degraded Ready: no such bucket"},
		{"numbers", `return {status = "Healthy", message = obj.spec.replicas .. " of " .. obj.metadata.generation + 1 .. ", " .. obj.status.ratio}`, "Healthy some of all, 0.5"},
		{"null is nil", `return {status = "Healthy", message = obj.status.nothing == nil and "nil" or "there"}`, "Healthy nil"},
		{"false is false", `return {status = obj.spec.paused and "Suspended" or "Healthy"}`, "Healthy "},
		{"recursion", `local function f(n) if n == 0 then return "end" end return f(n - 1) end; return {status = "Healthy", message = f(50)}`, "Healthy end"},
		{"several at once", `local t = {1, 2}; t[1], t[2] = t[2], t[1]; return {status = "Healthy", message = "swapped " .. t[1] .. t[2]}`, "Healthy swapped 21"},
		{"several results", `local function f() return "a", "b" end; local t = {f()}; local x = f() .. f(); return {status = "Healthy", message = #t .. x}`, "Healthy 2aa"},
		{"varargs", `local function f(...) local t = {...}; return #t end; return {status = "Healthy", message = "n" .. f(1, 2, 3)}`, "Healthy n3"},
		{"methods", `local o = {n = 1}; function o:up() self.n = self.n + 1; return self end; return {status = "Healthy", message = "n" .. o:up():up().n}`, "Healthy n3"},
		{"goto, while and repeat", `local i = 0; while true do i = i + 1; if i > 3 then break end end; repeat i = i + 1 until i > 9; return {status = "Healthy", message = "n" .. i}`, "Healthy n10"},
		{"nothing", `return nil`, "none"},
		{"no return", `local a = 1`, "none"},
		{"an empty table", `return {}`, "none"},
		{"a steady message", `return {status = "Progressing", message = "try 5 at 2026-01-01T10:00:00Z"}`, "Progressing try … at …"},
		{"no such status", `return {status = "Good"}`, `error: s: it returned the status "Good"; return Healthy, Progressing, Degraded, Suspended, Missing or Unknown`},
		{"a text", `return "Healthy"`, "error: s: it returned a string; return a table with status and message"},
		{"nil indexed", "\n\nreturn {status = obj.spec.nothing.here}", "error: s: line 3: attempt to index a non-table object(nil) with key 'here'"},
		{"nil joined", "\nlocal a = 'x' .. obj.nothing", "error: s: line 2: attempt to concatenate a nil value"},
		{"nil assigned", "\nobj.nothing.x = 1", "error: s: line 2: attempt to index a non-table object(nil) with key 'x'"},
		{"syntax", "local a =\n= 1", `error: s: line 2: syntax error near "="`},
		{"the end is missing", "if true then", "error: s: the script ends too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := run(t, c.source, Options{}); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestLibraries(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"string", `return {status = "Healthy", message = string.upper(obj.kind) .. ("%s-%02d"):format("a", 3) .. ("ab"):rep(2)}`, "Healthy WIDGETa-03abab"},
		{"find, match and gsub", `
local a = string.find(obj.kind, "dg"); local b = string.match("x=12", "%d+"); local c = string.gsub("a-b", "-", "_"); local d = string.gsub("ab", "%a", function(x) return x .. x end)
return {status = "Healthy", message = a .. b .. c .. d .. string.gsub("a.b", "%.", {["."] = "!"})}`, "Healthy 312a_baabba!b"},
		{"table", `local t = {}; table.insert(t, "a"); table.insert(t, 1, "b"); table.sort(t); return {status = "Healthy", message = table.concat(t, ",")}`, "Healthy a,b"},
		{"pairs and math", `local n = 0; for k, v in pairs(obj) do n = n + 1 end; return {status = "Healthy", message = "n" .. math.max(n, 1)}`, "Healthy n4"},
		{"the clock", `return {status = os.time() > 1000 and os.date("%Y") >= "2020" and "Healthy" or "Degraded"}`, "Healthy "},
		{"pcall", `local ok, err = pcall(function() return obj.x.y end); return {status = ok and "Healthy" or "Degraded"}`, "Degraded "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := run(t, c.source, Options{OpenLibs: true}); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if got := run(t, c.source, Options{}); !strings.HasPrefix(got, "error: ") {
				t.Errorf("without libraries: %s", got)
			}
		})
	}
}

// What reaches out of a run is not there, with and without libraries.
func TestNothingReachesOut(t *testing.T) {
	for _, name := range []string{
		"os.execute", "os.getenv", "os.exit", "os.remove", "os.rename", "os.tmpname", "io", "debug", "package", "coroutine", "channel",
		"require", "module", "load", "loadstring", "loadfile", "dofile", "print", "collectgarbage", "getfenv", "setfenv", "_G", "newproxy",
		"_printregs", "string.dump",
	} {
		source := `return {status = ` + name + ` == nil and "Healthy" or "Degraded"}`
		if got := run(t, source, Options{OpenLibs: true}); got != "Healthy " {
			t.Errorf("%s with libraries: %s", name, got)
		}
		first, _, _ := strings.Cut(name, ".")
		if got := run(t, `return {status = `+first+` == nil and "Healthy" or "Degraded"}`, Options{}); got != "Healthy " {
			t.Errorf("%s without libraries: %s", first, got)
		}
	}
}

// Each of these would run for ever or take all memory; each ends, within its minute, with a sentence, and takes little.
func TestHostileScripts(t *testing.T) {
	const instructions, memory = "it ran more than 1000000 instructions", "it needs more than 16777216 bytes of memory"
	for _, c := range []struct {
		name, source string
		libs         bool
		want         string
	}{
		{"endless loop", `while true do end`, false, instructions},
		{"long for", `for i = 1, 1e18 do end`, false, instructions},
		{"goto", `::a:: goto a`, false, instructions},
		{"doubled text", `local s = "xxxxxxxxxxxxxxxx"; while true do s = s .. s end`, false, memory},
		{"many tables", `local t = {}; for i = 1, 1e9 do t[i] = {} end`, false, memory},
		{"many functions", `local t = {}; for i = 1, 1e9 do t[i] = function() return i end end`, false, memory},
		{"a far element", `local t = {}; t[60000000] = 1`, false, memory},
		{"many far elements", `local a = {}; for i = 1, 1e6 do local t = {}; t[60000] = 1; a[i] = t end`, false, memory},
		{"far elements at once", `local t, u = {}, {}; t[60000000], u[1] = 1, 2`, false, "line 1: 60000000 is too high a number for a key here"},
		{"a far constructor", `local t = {[60000000] = 1}`, false, "line 1: 60000000 is too high a number for a key here"},
		{"deep recursion", `local function f() return 1 + f() end; f()`, false, "line 1: stack overflow"},
		{"rep", `local s = string.rep("x", 1e9)`, true, memory},
		{"rep as a method", `local s = ("x"):rep(1e9)`, true, memory},
		{"format", `local s = string.format("%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d%900000d", 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)`, true, memory},
		{"concat", `local s = ("x"):rep(1e6); local t = {}; for i = 1, 1000 do t[i] = s end; s = table.concat(t)`, true, memory},
		{"gsub", `local s = ("x"):rep(1e5); s = s:gsub("x", s)`, true, memory},
		{"gsub with captures", `local s = ("x"):rep(1e5); s = s:gsub(".", ("%0"):rep(1000))`, true, memory},
		{"gsub with a function", `local s = ("x"):rep(1000); local y = ("y"):rep(1e6); s = s:gsub("x", function() return y end)`, true, "line 1: a replacement has more than 1024 bytes"},
		{"gsub with a table", `local s = ("x"):rep(1000); s = s:gsub("x", {x = ("y"):rep(1e6)})`, true, memory},
		{"insert", `local t = {}; table.insert(t, 60000000, 1)`, true, memory},
		{"rawset", `local t = {}; rawset(t, 60000000, 1)`, true, memory},
		{"unpack", `local t = {unpack({}, 1, 1e8)}`, true, "line 1: registry overflow"},
		{"a pattern that backtracks", `local s = ("a"):rep(5000); s:find("a*a*a*a*a*b")`, true, "line 1: the pattern has too many repetitions for a text of 5000 bytes"},
		{"a caught limit", `while true do pcall(function() while true do end end) end`, true, instructions},
		{"a caught memory limit", `pcall(string.rep, "x", 1e9); return {status = "Healthy"}`, true, memory},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := run(t, c.source, Options{OpenLibs: c.libs, Limits: Limits{Time: time.Minute}})
			runtime.ReadMemStats(&after)
			if want := "error: s: " + c.want; got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 300<<20 {
				t.Errorf("it took %d MB in all", used>>20)
			}
		})
	}
}

func TestTime(t *testing.T) {
	got := run(t, `while true do end`, Options{Limits: Limits{Time: 20 * time.Millisecond, Instructions: 1 << 50}})
	if want := "error: s: it ran longer than 20ms"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	script, err := Compile("s", `while true do end`, Options{Limits: Limits{Instructions: 1 << 50}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := script.Health(ctx, object()); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("canceled: %v", err)
	}
}

func TestLongScript(t *testing.T) {
	if _, err := Compile("s", strings.Repeat("-", maxSource+1), Options{}); err == nil || !strings.Contains(err.Error(), "131073 bytes") {
		t.Error(err)
	}
}

// One script serves many objects at once.
func TestRunsDoNotMeet(t *testing.T) {
	script, err := Compile("s", `if seen then return {status = "Degraded"} end; seen = true; return {status = "Healthy"}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 8)
	for range cap(done) {
		go func() {
			health, _, err := script.Health(context.Background(), object())
			if err != nil {
				done <- err.Error()
				return
			}
			done <- string(health.Status)
		}()
	}
	for range cap(done) {
		if got := <-done; got != "Healthy" {
			t.Error(got)
		}
	}
}
