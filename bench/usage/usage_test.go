package usage

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	// A command may hold spaces and parentheses.
	text := "42 (a (b) c) S 7 42 41 0 -1 4194304 1 2 3 4 10 20 300 4000 20 0 1 0 5 6 7"
	got, err := parseStat(42, text)
	if err != nil {
		t.Fatal(err)
	}
	want := process{pid: 42, parent: 7, session: 41, cpu: 43300 * time.Millisecond}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "42 (a", "42 (a) S 1 2"} {
		if _, err := parseStat(42, bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestParsePss(t *testing.T) {
	got, err := parsePss(1, []byte("00400000-7fff [rollup]\nRss:      9000 kB\nPss:      1234 kB\nPss_Anon:  5 kB\n"))
	if err != nil || got != 1234<<10 {
		t.Errorf("got %d, %v", got, err)
	}
}

// helper, run by a shell, is a tree: a shell whose child has burnt time and ended, and whose other child lives.
const helper = `
i=0; (while [ $i -lt 200000 ]; do i=$((i+1)); done)
sleep 60 & echo ready; read line; kill $!; wait`

func TestTreeOfProcesses(t *testing.T) {
	cmd := exec.Command("sh", "-c", helper)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	found, err := tree(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 {
		t.Errorf("%d processes, want the shell and sleep: %+v", len(found), found)
	}
	cpu, err := CPU(cmd.Process.Pid)
	if err != nil || cpu < 2*tick || cpu > time.Minute {
		t.Errorf("CPU %v, %v: the ended child is not in it", cpu, err)
	}
	sampler := Watch(t.Context(), cmd.Process.Pid)
	sampler.Stop()
	if peak, n := sampler.Peak(); peak < 50<<10 || peak > 100<<20 || n == 0 {
		t.Errorf("peak %d of %d samples", peak, n)
	}
}

func TestEndedProcess(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Memory(cmd.Process.Pid); err == nil {
		t.Error("no error for a process that has ended")
	}
}

func TestMachine(t *testing.T) {
	busy, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	if busy <= 0 {
		t.Errorf("busy %v at uptime %s", busy, strings.TrimSpace(string(uptime)))
	}
}
